"""Edges of `torch.func` and `autograd.functional` that PyTorch's own tests touch."""

from __future__ import annotations

import copy
import importlib
import warnings
from typing import Any

import pytest
from helpers.sameness import same


def _functional(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.autograd.functional")


def _point(lib: Any, requires_grad: bool = False) -> Any:
    return lib.tensor([1.5, -0.5, 2.0], dtype=lib.float64, requires_grad=requires_grad)


def _seen(x: Any) -> Any:
    """Return the compared parts of a result; other tests compare the nodes of tangents."""
    return x.requires_grad, x.is_leaf, x._is_view(), x.detach()


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        lambda lib, x: x, lambda lib, x: x[:2], lambda lib, x: x.sin(),
        lambda lib, x: (x * 1, [x, lib.ones(2)]),
    ],
)  # fmt: skip
def test_the_value_that_a_push_returns_is_a_view(f: Any, requires_grad: bool) -> None:
    def program(lib: Any, log: Any) -> None:
        x, t = _point(lib, requires_grad), _point(lib) * 2
        out, _ = lib.func.jvp(lambda x: f(lib, x), (x,), (t,))
        for o in [out] if isinstance(out, lib.Tensor) else [out[0], *out[1]]:
            log(_seen(o), o.grad_fn and o.grad_fn.name())
            if not requires_grad:
                o.mul_(2)
        log(x)

    same(program)


@pytest.mark.parametrize("vectorize", [False, True])
def test_what_jacobians_are_pieces_of(vectorize: bool) -> None:
    def program(lib: Any, log: Any) -> None:
        x, y = _point(lib, True), _point(lib) * 2

        def f(x: Any, y: Any) -> Any:
            return x * y, (x * y.exp()).sum()

        found = _functional(lib).jacobian(f, (x, y), create_graph=True, vectorize=vectorize)
        for block in [b for row in found for b in row]:
            log(_seen(block), block.grad_fn.name(), block.grad_fn.next_functions[0][0].name())
        log(lib.autograd.grad(sum((b**2).sum() for row in found for b in row), x)[0].clone())

    same(program)


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians_of_nothing(vectorize: bool) -> None:
    def program(lib: Any, log: Any) -> None:
        x, functional = _point(lib), _functional(lib)
        for inputs in (x, (x,), (), x[:0]):
            for f in (lambda *x: (), lambda *x: x[0][:0], lambda *x: x):
                with log.catch():
                    functional.jacobian(f, inputs, vectorize=vectorize)
        log.attempt(functional.vjp, lambda x: (), x, ())
        log.attempt(functional.jvp, lambda x: (), x, x)
        log.attempt(functional.jvp, lambda x: x.long(), x, x)

    same(program)


@pytest.mark.parametrize("transform", ["grad", "vmap", "jacfwd"])
def test_copies_made_inside(transform: str) -> None:
    """Only one that requires grad is refused."""

    def program(lib: Any, log: Any) -> None:
        for requires_grad in (False, True):
            weight = _point(lib, requires_grad)
            wrapped = getattr(lib.func, transform)(lambda x, w=weight: (x * copy.deepcopy(w)).sum())
            x = _point(lib)
            log.attempt(wrapped, lib.stack([x, x]) if transform == "vmap" else x)

    same(program)


def test_points_of_linear_functions() -> None:
    def program(lib: Any, log: Any) -> None:
        linearize = lib.func.linearize
        for point in (2.0, lib.tensor(2), [lib.tensor(1.0), 2.0], None):
            for f in (lib.sin, lambda x: x):
                with log.catch():
                    linearize(f, point)

    same(program)


def test_linear_functions_of_functions_without_setup_context() -> None:
    def program(lib: Any, log: Any) -> None:
        class Sine(lib.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                ctx.save_for_forward(x)
                return x.sin()

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * ctx.saved_tensors[0].cos()

            @staticmethod
            def jvp(ctx: Any, t: Any) -> Any:
                return t * ctx.saved_tensors[0].cos()

        warnings.filterwarnings("ignore", "Attempted to insert a get_attr Node")
        out, push = lib.func.linearize(Sine.apply, _point(lib))
        log(out, push(_point(lib)).tolist())
        log.attempt(lib.func.jvp, Sine.apply, (_point(lib),), (_point(lib),))

    same(program)


def _forwards(with_context: bool) -> list[Any]:
    if with_context:
        return [
            lambda x, *, y=2.0: x + y, lambda x, y=2.0: x + y, lambda x, **k: x + len(k),
            lambda x, *a, y=2.0: x + y + sum(a),
        ]  # fmt: skip
    return [
        lambda ctx, x, *, y=2.0: x + y, lambda ctx, x, y=2.0: x + y,
        lambda ctx, x, **k: x + len(k), lambda ctx, x, *a, y=2.0: x + y + sum(a),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("with_context", [True, False])
def test_arguments_of_functions_by_name(with_context: bool, which: int) -> None:
    """`forward` takes arguments in their places only."""

    def program(lib: Any, log: Any) -> None:
        members = {
            "forward": staticmethod(_forwards(with_context)[which]),
            "backward": staticmethod(lambda ctx, g: (g, None, None)),
        }
        if with_context:
            members["setup_context"] = staticmethod(lambda ctx, inputs, output: None)
        add = type("Add", (lib.autograd.Function,), members).apply  # type: ignore[attr-defined]
        x = _point(lib)
        calls: list[Any] = [
            ((x,), {}), ((x,), {"y": 3.0}), ((x,), {"z": 3.0}), ((x, 1.0), {}),
            ((x, 1.0), {"y": 1.0}), ((x,), {"y": 1.0, "z": 2.0}), ((), {"x": x}),
            ((), {"x": x, "z": 1.0}), ((), {"z": 1.0}),
        ]  # fmt: skip
        for args, kwargs in calls:
            log.attempt(add, *args, **kwargs)
        log.attempt(lib.func.grad(lambda x: add(x, y=1.0).sum()), x)

    same(program)


@pytest.mark.parametrize("place", [0, -1, 2, "a"])
def test_where_a_rule_of_vmap_says_that_examples_are(place: Any) -> None:
    def program(lib: Any, log: Any) -> None:
        class Double(lib.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(x: Any) -> Any:
                return x * 2

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                pass

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any) -> Any:
                return x * 2, place

        log.attempt(lambda x: lib.vmap(Double.apply)(x).tolist(), lib.ones(2, 2))

    same(program)


@pytest.mark.parametrize("in_dim", [0, 1])
@pytest.mark.parametrize("f", [lambda x: x, lambda x: x[:1], lambda x: x.unsqueeze(0)])
def test_the_value_of_a_mapped_push_shares_memory_with_the_batch(f: Any, in_dim: int) -> None:
    def program(lib: Any, log: Any) -> None:
        batch = lib.stack([_point(lib), _point(lib) * 2])
        push = lib.vmap(lambda x, t: lib.func.jvp(f, (x,), (t,)), in_dims=in_dim)
        out, along = push(batch, batch * 3)
        log(_seen(out), along.detach())
        out.mul_(2)
        log(batch, out.tolist(), along.tolist())

    same(program)
