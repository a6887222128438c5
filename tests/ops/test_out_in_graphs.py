"""Cases of `dtype=` and `out=` where a graph is recorded, found by random programs."""

from __future__ import annotations

from typing import Any

from helpers.sameness import Log, same


def test_integer_results_of_what_requires_grad_are_refused() -> None:
    """Where `dtype=` asks for one: argmax and its like have no gradient anyway."""

    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.5, 2.0], requires_grad=True)
        for name in ("sum", "prod", "nansum", "cumsum", "cumprod"):
            dims = (0,) if name[:3] == "cum" else ()
            for dtype in (t.int64, t.bool, t.uint8, t.float64):
                log.attempt(getattr(x, name), *dims, dtype=dtype)
                log.attempt(getattr(t, name), x.detach(), *dims, dtype=dtype)
        with t.no_grad():
            log(x.sum(dtype=t.int64))


def test_what_is_refused_is_refused_under_saved_tensor_hooks_too() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.5, 2.0], requires_grad=True)
        z = t.tensor([0.5 + 1j, -2j], requires_grad=True)
        weight = t.tensor([1.0, 2.0], requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda a: a, lambda a: a):
            for name in ("sum", "prod"):
                log.attempt(getattr(x, name), dtype=t.int64)
            log.attempt(t.cumprod, x, 0, dtype=t.int32)
            log.attempt(t.nan_to_num, z)
            log.attempt(t.nn.functional.silu, z)
            log.attempt(t.softmax, z, 0)
            nll = t.nn.functional.nll_loss
            log.attempt(nll, x.view(1, 2), t.tensor([0]), weight)


def test_reductions_warn_of_imaginary_parts_that_a_cast_drops() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        z = t.tensor([0.5 + 1j, -2j], requires_grad=True)
        for name in ("sum", "prod", "mean"):
            log(getattr(z, name)(dtype=t.float64), getattr(t, name)(z, dtype=t.complex128))
        log(z.cumsum(0, dtype=t.float32), t.cumprod(z.detach(), dim=0, dtype=t.float32))
        log(z[:0].sum(dtype=t.float64), z.detach().sum(dtype=t.bool))
        log.attempt(z.sum, dtype=t.int64)


def test_edges_of_what_is_written_without_a_formula() -> None:
    """They lead to what the result was made of, and to `out=` if that has a history."""

    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 2.0], requires_grad=True)
        plain = t.tensor([0.5, 0.25])
        for a, b in ((x, plain), (plain, x), (x * 2, x.exp()), (x, x)):
            log(t.heaviside(a, b, out=t.empty(2)).grad_fn)
            log(t.floor_divide(a, b, out=t.empty(2)).grad_fn)
        log(t.diag(x * 2, out=t.empty(2, 2)).grad_fn)
        log(t.slice_scatter(x * 2, x.exp()[:1], 0, 0, 1, out=t.empty(2)).grad_fn)
        for y in (x * 2, plain.clone()):
            log(t.heaviside(x.exp(), y, out=y).grad_fn)
        row = t.empty(2, 2)
        t.heaviside(x * 2, x.exp(), out=row[0])
        log(row.grad_fn)


def test_factories_write_into_what_has_a_history() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 2.0], requires_grad=True)
        for make in (
            lambda out: t.arange(2.0, out=out), lambda out: t.linspace(0, 1, 2, out=out),
            lambda out: t.zeros(2, out=out), lambda out: t.full((2,), 3.0, out=out),
        ):  # fmt: skip
            y = x * 2
            log.attempt(make, x)
            log.attempt(make, x.view(1, 2)[0])
            log(make(y) is y, y, y.grad_fn)
            part = (x * 3).view(1, 2)[0]
            log(make(part), part._base.grad_fn.name())
            log.attempt(y.sum().backward)
            with t.no_grad():
                log(make(x.exp()))
