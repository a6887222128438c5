"""In-place writes, versions, saved tensors that changed, `.data` and `detach`, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same


def test_arithmetic_counts_versions() -> None:
    def program(torch: Any, see: Any) -> None:
        a = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        a += 1
        a.mul_(2).sub_(1)
        see(a, a._version)
        a[0] = 7
        a[1:] = torch.tensor([1.0, 0.0], dtype=torch.float64)
        a[a > 5] = 0.5
        a.copy_(a * 2)
        see(a)
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        y += a
        y *= x
        y.sin_()
        see(y, y.grad_fn)
        y.sum().backward()
        see.gradients(x.grad)
        y = x * 2
        y.zero_()
        y.add_(x)
        see(y, y.grad_fn)

    same(program, everywhere=True)


WRITES = {
    "leaf": lambda x, y: x.add_(1),
    "leaf item": lambda x, y: x.__setitem__(0, 1.0),
    "view of leaf": lambda x, y: x[0].mul_(2),
    "mask": lambda x, y: x.__setitem__(x > 0, 1.0),
    "shape": lambda x, y: y[0].add_(y * 2),
    "dtype": lambda x, y: (y > 0).long().add_(0.5),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_forbidden(write: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        with see.catch():
            write(x, y)
        with torch.no_grad(), see.catch():
            write(x, y)
        see(x, y)


MODIFY = {
    "itself": lambda y: y.add_(1),
    "a view": lambda y: y[0].zero_(),
    "detached": lambda y: y.detach().mul_(2),
    "copy": lambda y: y.copy_(y.detach()),
    "twice": lambda y: y.add_(1).add_(1),
}


@pytest.mark.parametrize("modify", MODIFY.values(), ids=MODIFY)
@pytest.mark.parametrize("op", ["mul", "exp", "tanh", "sin"])
def test_saved_tensors_changed(modify: Any, op: str) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
        y = x * 3
        z = y * y if op == "mul" else getattr(y, op)()
        modify(y)
        see.attempt(lambda: z.sum().backward())
        y = (x * 2).exp()
        modify(y)
        see.attempt(lambda: y.sum().backward())


def test_data_and_detach() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        d, e = x.detach(), x.data
        see(d, e)
        d.add_(1)
        see(x, d, e)
        e.mul_(2)
        see(x, d, e, x._version, d._version, e._version)
        x.data = torch.tensor([5.0, 6.0], dtype=torch.float64)
        see(x, d)
        y = x * 2
        see(y.detach_(), y.is_leaf)
        (x * y).sum().backward()
        see.gradients(x.grad)
        v = (x * 2)[0]
        see.attempt(v.detach_)
        c = x.clone()
        c.add_(1)
        see(c, x)


def test_requires_grad() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, dtype=torch.float64)
        see(x.requires_grad_() is x, x)
        x.requires_grad = False
        see(x)
        y = x.requires_grad_() * 2
        see.attempt(y.requires_grad_, False)
        see.attempt(y.requires_grad_)
        see.attempt(setattr, y, "requires_grad", True)
        see.attempt(setattr, y, "requires_grad", False)
        see.attempt(torch.ones(2, dtype=torch.int64).requires_grad_)
        see.attempt(setattr, torch.ones(2, dtype=torch.int64), "requires_grad", True)
        v = x.detach()[0]
        v.requires_grad_()
        see(v)


def test_activations_in_place_save_what_they_made() -> None:
    """Of the result a negative slope tells no sides, so that PyTorch has no gradient there."""

    @same
    def program(torch: Any, see: Any) -> None:
        F = torch.nn.functional
        for slope in (0.5, -2.0, 0.25):
            for change in (
                lambda x, a: F.leaky_relu_(x, a), lambda x, a: F.leaky_relu(x, a, inplace=True),
                lambda x, a: F.rrelu_(x, a, 1.0), lambda x, a: torch.rrelu_(x, 2 * a, 0.0),
                lambda x, a: F.elu_(x, alpha=a), lambda x, a: F.elu(x, a, True),
                lambda x, a: F.celu_(x, a), lambda x, a: torch.celu_(x, alpha=a),
                lambda x, a: F.selu_(x), lambda x, a: F.threshold_(x, 0.5, a),
                lambda x, a: x.copysign_(a), lambda x, a: F.leaky_relu(x, a),
            ):  # fmt: skip
                x = torch.tensor([-2.0, 0.0, 1.0], requires_grad=True)
                y = change(x.clone(), slope)
                see(type(y.grad_fn).__name__, hasattr(y.grad_fn, "_saved_result"))
                z = x.clone()
                change(z[1:], slope)
                for of in (y, z):
                    with see.catch():
                        see(torch.autograd.grad(of.sum(), x, retain_graph=True)[0].tolist())
                with torch.no_grad():
                    y.mul_(2)
                see.attempt(y.sum().backward)


def test_hooks_on_what_activations_in_place_saved() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        F = torch.nn.functional
        for change in (
            lambda x: F.leaky_relu_(x, 0.5), lambda x: F.elu_(x, 2.0), lambda x: F.celu_(x, 0.5),
            lambda x: F.selu_(x), lambda x: F.leaky_relu_(x, -0.5),
        ):  # fmt: skip
            x = torch.tensor([-2.0, 0.0, 1.0], requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
                y = change(x.clone())
            with see.catch():
                see([round(v, 4) for v in torch.autograd.grad(y.sum(), x)[0].tolist()])


def test_numbers_that_nodes_keep_are_no_tensors() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, requires_grad=True)
        for k in (2, 3, 4):  # by now a runtime input
            for y in (x**k, x.clamp(0, k), x.lerp(x.detach(), k), x**x, x.clamp(x, x)):
                see(sorted(n for n in dir(y.grad_fn) if n.startswith("_raw_saved")))
                see(hasattr(y.grad_fn, "_raw_saved_exponent"))
        for other in (x.detach(), torch.tensor(2)):
            y = x.ldexp(other)
            with torch.no_grad():
                y.mul_(2)
            see.attempt(y.sum().backward)


@pytest.mark.parametrize("call", [
    "x.index_add_(0, lib.tensor([0]), x[:1].detach())", "x.index_put_((lib.tensor([0]),), x[0])",
])  # fmt: skip
def test_a_write_that_memory_forbids_has_not_happened(call: str) -> None:
    @same
    def program(lib: Any, log: Any) -> None:
        q = lib.ones(2, 3, requires_grad=True)
        x = q * 2
        log.attempt(lambda: eval(call, {"lib": lib, "x": x}))
        log(x._version)
        (x * x).sum().backward()
        log(q.grad)


def test_scattering_into_what_is_complex_is_refused() -> None:
    @same
    def program(lib: Any, log: Any) -> None:
        u = lib.ones(2, 3, dtype=lib.complex64, requires_grad=True) * 2
        for x in (u, u.detach()):
            log.attempt(x.select_scatter, u[0], 0, 0)
            log.attempt(x.slice_scatter, u[:1], 0, 0, 1)
            log.attempt(x.select_scatter, u[0].detach(), 0, 0)


@pytest.mark.parametrize("dtype", ["complex128", "bool", "int64", "float32"])
@pytest.mark.parametrize("name", [
    "clamp", "clamp_min", "heaviside", "sub", "gcd", "igamma", "atan2", "float_power", "nextafter",
    "abs", "floor", "sign", "deg2rad", "neg", "erf", "relu", "signbit", "i0", "bitwise_not",
])  # fmt: skip
def test_dtypes_are_refused_before_memory_is_looked_at(name: str, dtype: str) -> None:
    """By PyTorch's rules; its kernels refuse after that."""

    @same
    def program(lib: Any, log: Any) -> None:
        for by_kernel in (lambda b: b.view(-1)[1:4], lambda b: b[:1, 0].expand(3)):
            b = lib.ones(3, 3).to(getattr(lib, dtype))
            given = (b[0],) if name in _OF_ONE else (b[0], b[1])
            written = by_kernel(b)
            if hasattr(b, name + "_"):
                log.attempt(getattr(written, name + "_"), *given[1:])
            if name != "relu" and (name, dtype) != ("float_power", "float32"):
                log.attempt(getattr(lib, name), *given, out=by_kernel(b))


_OF_ONE = {"abs", "floor", "sign", "deg2rad", "neg", "erf", "relu", "signbit", "i0", "bitwise_not"}


def without_history(torch: Any) -> tuple[Any, Any]:
    """Two views that autograd cannot tell the history of: one op made them, and their base was
    written to."""
    a = torch.ones(3, requires_grad=True) * 1
    first, second, _ = a.unbind()
    a.mul_(2)
    return first, second


def test_operands_are_asked_for_their_history_before_dtypes_and_memory() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        u, _ = without_history(torch)
        for number in (torch.ones(()), torch.ones((), dtype=torch.int64)):
            for name in ("eq_", "lt_", "bitwise_and_", "add_"):
                log.attempt(lambda x=number, n=name: getattr(x, n)(u))
            log(number)


def test_a_comparison_of_views_that_lost_their_history_asks_for_none() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch.allclose(*without_history(torch)))


def test_ldexp_of_overlapping_memory() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        y = torch.tensor([1.0, 2.0, 3.0])
        log.attempt(lambda: y.ldexp_(y))
        log.attempt(lambda: y[1:].ldexp_(y[:-1]))
        log(y)
