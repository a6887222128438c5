"""What a Function lets go of, and when."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest
from sameness import Log, same

import leafax


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("hooked", [False, True])
def test_boxed_gradients_are_held_by_the_box_alone(hooked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Boxed(torch.autograd.Function):
            boxed_grads_call = True

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grads: Any) -> Any:
                (grad,) = grads
                seen, made = ref(grad), grad * 2
                grads.clear()
                del grad
                log(seen() is None)
                return made

        x = torch.ones(2, requires_grad=True)
        y = Boxed.apply(x)
        if hooked:
            y.grad_fn.register_hook(lambda given, taken: log(taken[0].detach()))
        y.sum().backward()
        log.gradients(x.grad)


def test_saved_tensors_that_are_cleared_on_access() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Once(torch.autograd.Function):
            clear_saved_tensors_on_access = True

            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                x, y = ctx.saved_tensors
                log.attempt(lambda: ctx.saved_tensors)
                log(ctx._raw_saved_tensors)
                made, seen = (grad * y, grad * x), ref(y)
                del x, y
                log(seen() is None)
                return made

        x = torch.ones(2, requires_grad=True)
        y = Once.apply(x, x * 2)
        y.sum().backward(retain_graph=True)
        log.gradients(x.grad)
        log.attempt(y.sum().backward)
        node = Once.apply(x, x * 2).grad_fn
        log(len(node.saved_tensors))
        log.attempt(lambda: node.saved_tensors)


def test_a_view_that_was_written_to_and_saved_dies_with_its_last_reference() -> None:
    class Writes(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = leafax.ones(2, requires_grad=True).clone()
    x = x.view_as(x)
    seen = ref(Writes.apply(x))
    assert seen() is x
    del x
    assert seen() is None
