"""Checkpoints that hold Functions, share a recomputation between passes, or differ when called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import pytest
import torch.utils.checkpoint  # noqa: F401  # `same` programs read it off `torch`
from helpers.sameness import Log, same

import leafax
import leafax.utils.checkpoint


def _cube(torch: Any, log: Log, twice: bool = False) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            out = x * x * y
            ctx.save_for_backward(x, y, out)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y, out = ctx.saved_tensors
            if twice:
                x.sum().item()  # runs what is pending
                log.attempt(lambda: ctx.saved_tensors)
            log(x.requires_grad, x.is_leaf, y.requires_grad, out.grad_fn is ctx)
            return 2 * grad * out / x, grad * x * x

    return Cube


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_function_saves_is_computed_again(nested: bool, create_graph: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint, calls = torch.utils.checkpoint.checkpoint, []
        cube = _cube(torch, log)
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        k = torch.tensor([3.0, 1.0])

        def block(x: Any) -> Any:
            calls.append(1)
            return cube.apply(x.sin() * 2, k).exp()

        def outer(x: Any) -> Any:
            return checkpoint(block, x * 2, use_reentrant=False) if nested else block(x * 2)

        y = checkpoint(outer, x, use_reentrant=False)
        log(len(calls))
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=create_graph)
        if not nested:
            log(len(calls))
        log.gradients(g.detach())


def test_saved_tensors_once_a_pass() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        cube = _cube(torch, log, twice=True)
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(cube.apply, x, x * 2, use_reentrant=False)
        y.sum().backward()
        log.gradients(x.grad)


def test_an_input_without_gradient_is_itself() -> None:
    seen = []

    class Scale(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.save_for_backward(k)
            return x * k

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.extend(ctx.saved_tensors)
            return grad * seen[0], None

    x, k = leafax.ones(2, requires_grad=True), leafax.ones(2)
    leafax.utils.checkpoint.checkpoint(Scale.apply, x, k, use_reentrant=False).sum().backward()
    assert seen[0] is k


def test_nothing_of_a_function_outlives_the_forward_pass() -> None:
    class Sin(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x.cos()

    x = leafax.full((1234, 3), 0.5, requires_grad=True)
    block = lambda x: Sin.apply(Sin.apply(x * 2) * 2)  # noqa: E731
    y = leafax.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    assert y[0, 0].item() > 0  # the program has run
    large = [a for a in jax.live_arrays() if a.shape == (1234, 3)]
    assert len(large) <= 2, "x and y"
    y.sum().backward()
    assert x.grad is not None


def test_group_of_passes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        x = torch.tensor([0.5, 2.0], requires_grad=True)

        def chain(grouped: bool) -> None:  # nothing cuts the program between the passes
            calls = []

            def block(x: Any) -> Any:
                calls.append(1)
                y = x.sin().cos()
                return y, y.exp().cos()

            y, z = module.checkpoint(block, x, use_reentrant=False)
            with module.GraphExecGroup() if grouped else torch.enable_grad():
                (gy,) = torch.autograd.grad(z, y, torch.ones(2))
                (gx,) = torch.autograd.grad(y, x, gy)
            log(len(calls))
            log.gradients(gx)

        def overlap() -> None:
            y = module.checkpoint(lambda x: x.sin().cos(), x, use_reentrant=False)
            with module.GraphExecGroup() as group:
                log(module.GraphExecGroup._get_current_group() is group)
                try:
                    module.GraphExecGroup().__enter__()
                except RuntimeError as e:
                    log(str(e).split(" <")[0])
                y.sum().backward(retain_graph=True)
                log.attempt(y.sum().backward)
            log(module.GraphExecGroup._get_current_group())

        chain(True)
        chain(False)
        overlap()


DIFFER: dict[str, Callable[[Any, int], Any]] = {
    "fewer": lambda x, n: x.sin().exp().sin() if n == 1 else x.sin().exp(),
    "more": lambda x, n: x.sin().exp() if n == 1 else x.sin().exp().sin(),
    "shape": lambda x, n: x.sin().exp() if n == 1 else x.sin() * x.sin().new_ones(3, 2),
}


@pytest.mark.parametrize("change", DIFFER)
@pytest.mark.parametrize("debug", [None, False])
def test_the_whole_message(change: str, debug: bool | None) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module, calls = torch.utils.checkpoint, []

        def block(x: Any) -> Any:
            calls.append(1)
            return DIFFER[change](x, len(calls))

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        with module.set_checkpoint_early_stop(False), module.set_checkpoint_debug_enabled(debug):
            y = module.checkpoint(block, x, use_reentrant=False, debug=debug is False)
        log.attempt(y.sum().backward)


def test_saved_result_calls_again_each_time() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        calls = []

        def block(x: Any) -> Any:
            calls.append(1)
            return (x * x * 2).exp()

        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        for _ in range(2):
            log.gradients(y.grad_fn._saved_result.detach())
            log(len(calls))
        y.sum().backward()
        log(len(calls))
        log.attempt(lambda: y.grad_fn._saved_result)


def _walked(fn: Any, depth: int = 0) -> list[tuple[int, str]]:
    if fn is None or depth > 6:
        return []
    found = [(depth, fn.name())]
    for node, _ in fn.next_functions:
        found += _walked(node, depth + 1)
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    "name", ["exp", "square", "product", "norm", "index", "view", "in_place", "layer_norm"]
)
def test_gradients_of_a_checkpoint_have_the_graph_of_their_formulas(name: str, cut: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], dtype=torch.float64)
        x.requires_grad_()
        blocks = {
            "exp": lambda t: t.sigmoid().exp(),
            "square": lambda t: (t**2 + t * t).sqrt(),
            "product": lambda t: (t @ x.t()).tanh(),
            "norm": lambda t: t.norm(dim=1),
            "index": lambda t: t[:, [0, 2]].exp(),
            "view": lambda t: t.view(-1)[1:4].pow(3),
            "in_place": lambda t: t.clone().mul_(2).exp_(),
            "layer_norm": lambda t: torch.nn.functional.layer_norm(t, (3,)),
        }
        y = torch.utils.checkpoint.checkpoint(blocks[name], x, use_reentrant=False)
        if cut:
            y.sum().item()
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        log(_walked(g.grad_fn))
        (h,) = torch.autograd.grad((g * g).sum(), x)
        log.gradients(g.detach(), h)


@pytest.mark.parametrize("written", [False, True])
def test_a_checkpoint_in_a_dual_level_whose_function_takes_no_dual(written: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        k = x.norm()
        with torch.autograd.forward_ad.dual_level():
            y = torch.utils.checkpoint.checkpoint(lambda t: t * k, x, use_reentrant=False)
        if written:
            k.copy_(k.clone())  # nothing was saved
        log.gradients(*torch.autograd.grad(y.sum(), [x]))


@pytest.mark.parametrize("outer", [None, [], ["mm"]])
@pytest.mark.parametrize("inner", [[], ["mm"], ["sin"]])
@pytest.mark.parametrize("early", [True, False])
def test_a_policy_inside_a_checkpoint_that_stops_early(
    outer: list[str] | None, inner: list[str], early: bool
) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint

        def contexts(names: list[str] | None) -> Any:
            if names is None:
                return module.noop_context_fn
            ops = [getattr(torch.ops.aten, name).default for name in names]
            return functools.partial(module.create_selective_checkpoint_contexts, ops)

        def block(x: Any) -> Any:
            return module.checkpoint(
                lambda x: (x @ x).sin().cos(), x, use_reentrant=False, context_fn=contexts(inner)
            )

        for create_graph in (False, True):
            x = torch.tensor([[0.5, 1.0], [2.0, -1.0]], requires_grad=True)
            with module.set_checkpoint_early_stop(early):
                y = module.checkpoint(block, x, use_reentrant=False, context_fn=contexts(outer))
            (g,) = torch.autograd.grad(y.sum(), x, create_graph=create_graph)
            log.gradients(g)
