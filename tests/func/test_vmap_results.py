"""Results of `vmap` that are one another or views of one another, and how examples print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_results_that_view_one_another(tracked: bool, older: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def f(t: Any) -> Any:
            b = t * 2
            return b, b, b.t(), b.view(-1), b[0], b.t()[:, 1], b.unbind(0)[1], b.expand(2, 2, 2)

        mapped = torch._vmap_internals._vmap if older else torch.vmap
        x = torch.arange(8.0).reshape(2, 2, 2).requires_grad_(tracked)
        results = mapped(f, 0, 0)(x)
        base = results[0]
        for r in results:
            log(r.tolist(), tuple(r.shape), r is base, r._base is base, r._is_view())
            log(None if r is base or not tracked else r.grad_fn.name())
        if tracked:
            sum(r.sum() for r in results).backward()
            log(x.grad.tolist())
        else:
            results[3].add_(100)
            log([r.tolist() for r in results])


def test_results_that_view_one_another_along_other_dims() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def f(t: Any) -> Any:
            b = t * 2
            return b.t(), b, b, b.view(-1), b[0]

        results = torch.vmap(f, out_dims=(2, 0, 1, 1, 1))(torch.arange(8.0).reshape(2, 2, 2))
        log([(r.tolist(), r._is_view(), r is results[1]) for r in results])


def test_examples_print_where_their_dim_is() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def see(t: Any) -> Any:
            log(repr(t))
            return t

        x = torch.arange(12.0).reshape(3, 2, 2)
        vmap = torch.vmap
        for dim in (0, 1, 2, -1):
            vmap(see, in_dims=dim)(x)
        vmap(see, in_dims=1)(torch.zeros(1, 2))
        for inner, outer in ((0, 1), (1, 0), (1, 2)):
            vmap(vmap(see, in_dims=inner), in_dims=outer)(x)
        vmap(lambda t: see(t * 2), in_dims=1)(x)
        vmap(lambda t: see(t.t()), in_dims=1)(x)
        vmap(lambda t: see(t[0]), in_dims=2)(x)
        vmap(lambda t, u: see(t + u), in_dims=(2, None))(x, x[0, 0])
        vmap(lambda t: see(t.mul_(2)), in_dims=2)(x)


LOOKS: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda t, a: a.sum().item(),
    "float": lambda t, a: float(a.sum()),
    "int": lambda t, a: int(a.sum()),
    "tolist": lambda t, a: a.tolist(),
    "numpy": lambda t, a: a.numpy(),
    "bool": lambda t, a: a if a.sum() > 0 else -a,
    "equal": lambda t, a: a.equal(a),
    "allclose": lambda t, a: a.allclose(a),
    "data_ptr": lambda t, a: a.data_ptr(),
    "rand": lambda t, a: a + t.rand(2),
    "dropout": lambda t, a: t.nn.functional.dropout(a),
    "normal_": lambda t, a: a.clone().normal_(),
    "as_strided": lambda t, a: a.as_strided((9,), (1,), 0),
    "write": lambda t, a: t.ones(2).add_(a),
    "in": lambda t, a: 1.0 in a,
}


@pytest.mark.parametrize("what", LOOKS)
def test_words_of_the_two_vmaps(what: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def look(a: Any) -> Any:
            return LOOKS[what](torch, a)

        def hook(g: Any) -> Any:
            seen = look(g)
            return seen if isinstance(seen, torch.Tensor) else g

        for mapped in (torch.vmap, torch._vmap_internals._vmap):
            with log.catch():
                mapped(look)(torch.ones(3, 2))
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(hook)
        with log.catch():
            torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)


def test_duals_inside_the_older_vmap() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        forward_ad = torch.autograd.forward_ad

        def jvp(t: Any) -> Any:
            with forward_ad.dual_level():
                x = forward_ad.make_dual(torch.ones(2), t)
                return forward_ad.unpack_dual(x * x)[1], forward_ad.unpack_dual(x)[1]

        tangents = torch.arange(6.0).reshape(3, 2)
        both = torch._vmap_internals._vmap(jvp, 0, 0)(tangents)
        log(both[0].tolist(), both[1] is tangents)
        with log.catch():
            torch.vmap(jvp)(tangents)


def test_a_view_that_a_dual_is_written_to_shares_the_tangent() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        forward_ad = torch.autograd.forward_ad
        views = [lambda b: b.view_as(b), lambda b: b.t(), lambda b: b[:], lambda b: b.view(4)]
        with forward_ad.dual_level():
            for view in views:
                for write in ("copy_", "mul_"):
                    base = torch.zeros(2, 2)
                    v = view(base)
                    x = forward_ad.make_dual(torch.zeros(v.shape), torch.ones(v.shape))
                    getattr(v, write)(x)
                    part, whole = (forward_ad.unpack_dual(t)[1] for t in (v, v._base))
                    log(part is whole, part._is_view(), part._base is whole, whole._is_view())


def test_out_dims_none_refuses_what_differs_in_an_outer_map() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, 3)
        vmap = torch.vmap
        log.attempt(vmap(lambda t: vmap(lambda u: t * 2, out_dims=None)(t)), x)
        log.attempt(vmap(lambda t: vmap(lambda u: (t, u), out_dims=(None, 0))(t)), x)


RANDOM: dict[str, Callable[[Any, Any], Any]] = {
    "caught inside": lambda t, a: _caught(t, a),  # noqa: PLW0108
    "bernoulli": lambda t, a: t.bernoulli(a, 2.0),
    "randperm": lambda t, a: t.randperm(-1),
    "multinomial": lambda t, a: t.multinomial(a, 9),
    "normal": lambda t, a: t.normal(a, -1.0),
    "dropout of all": lambda t, a: t.nn.functional.dropout(a, 1.0),
    "torch.dropout of all": lambda t, a: t.dropout(a, 1.0, True),
    "alpha_dropout of all": lambda t, a: t.nn.functional.alpha_dropout(a, 1.0, True),
    "feature_alpha_dropout of all": lambda t, a: t.nn.functional.feature_alpha_dropout(
        a, 1.0, True
    ),
}


def _caught(t: Any, a: Any) -> Any:
    try:
        return a + t.rand_like(a)
    except RuntimeError:
        return a


@pytest.mark.parametrize("what", RANDOM)
def test_random_ops_are_refused_where_they_are_called(what: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        before = torch.get_rng_state()
        with log.catch():
            log(torch.vmap(lambda a: RANDOM[what](torch, a))(torch.ones(3, 4)).tolist())
        log(torch.equal(before, torch.get_rng_state()))


def test_dropout_of_everything() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        f = torch.nn.functional
        for drop in (f.dropout, f.alpha_dropout, f.feature_alpha_dropout):
            x = torch.ones(2, 3, requires_grad=True)
            y = drop(x, 1.0, True)
            log(y.grad_fn.name(), y.tolist())
            y.sum().backward()
            log.gradients(x.grad)
        log(f.dropout(torch.ones(2), 1.0, inplace=True).tolist())
        log(type(torch.native_dropout(torch.ones(2), 0.0, True)) is tuple)


def test_windows_of_examples_without_dims() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for dim in (0, -1):
            log(torch.vmap(lambda a, dim=dim: a.unfold(dim, 1, 1))(torch.ones(3)).tolist())


def test_windows_that_fractional_pools_have_no_room_for() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        pool = torch.nn.functional.fractional_max_pool3d
        cases = [
            ((1, 2, 3, 3), 1, (2, 2, 2)), ((1, 3, 3, 3), 1, (1, 3, 3)),
            ((1, 3, 3, 3), 2, (2, 2, 2)), ((1, 1, 1, 1), 1, (1, 1, 1)),
        ]  # fmt: skip
        for shape, size, output in cases:
            with log.catch():
                pool(torch.ones(shape), size, output)
        log(tuple(pool(torch.ones(1, 3, 3, 3), 1, (2, 2, 2)).shape))
