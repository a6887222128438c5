"""Errors for arguments that do not fit, and arguments that are ignored, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
from helpers.sameness import Log, same


def test_gradients_that_are_too_many_are_left_out() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.ones(2, requires_grad=True)
        y, g = x * 2 + 1, lib.ones(2)
        lib.autograd.backward(y, (g, g, 3))
        log(x.grad, lib.autograd.grad(y, x, (g, g)))
        for outputs, grads in (((y, y), (g,)), ((y, y), (lib.ones(3),)), (y, (lib.ones(3), g))):
            log.attempt(lib.autograd.backward, outputs, grads)
            log.attempt(lib.autograd.grad, outputs, x, grads)


def test_what_cannot_be_differentiated() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.ones(2, requires_grad=True)
        y = x.sum() * 2
        for wrong in (3, None, "a"):
            log.attempt(lib.autograd.grad, [y, wrong], x)
            log.attempt(lib.autograd.grad, y, (x, wrong))
            log.attempt(lib.autograd.backward, [y, wrong])
            log.attempt(lib.autograd.backward, y, inputs=[x, wrong])


def test_a_function_without_a_node_saves_nothing() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        class Saves(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any, *rest: Any) -> Any:
                ctx.save_for_backward(x, *rest)
                return 4, x * 2, None, x

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return grads[1], *[None] * len(ctx.needs_input_grad[1:])

        class Forward(Saves):
            @staticmethod
            def forward(ctx: Any, x: Any, *rest: Any) -> Any:
                ctx.save_for_forward(x, *rest)
                return x

        log(Saves.apply(2.5), Saves.apply(lib.ones(2), 1.5))
        leaf = lib.ones(2, requires_grad=True)
        with lib.no_grad():
            log(Saves.apply(leaf, "a")[1])
        log.attempt(Saves.apply, leaf, 1.5)
        log.attempt(Forward.apply, leaf, 1.5)
        node = Saves.apply(leaf)[1].grad_fn
        log([(m.shape, m.dtype, m.is_nested_tensor) for m in node._input_metadata])


def test_sizes_and_lists_of_tensors() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x, y = lib.ones(2, 3), lib.ones(())
        for name in ("view", "permute", "repeat", "reshape", "tile", "flip"):
            log.attempt(getattr(x, name), (1, 0), 0)
            log.attempt(getattr(x, name), [1, 0], 0)
        log.attempt(x.view, (3, 2), lib.float32)
        for size in ((-1,), (2, -3), ()):
            log.attempt(lib.ones(6).resize_, *size)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors"):
            for given in ((), ([],), (3,), (None,), ([y, 2],), (y, 2), (2, y), ([x, y],), (x, [y]),
                          (x, numpy.ones(2))):  # fmt: skip
                log.attempt(getattr(lib, name), *given)


def test_scopes_of_grad_mode_can_be_cloned() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        log(lib.set_grad_enabled(True).prev, lib.set_grad_enabled(True).clone().mode)
        with lib.inference_mode(False).clone() as _, lib.no_grad().clone():
            log(lib.is_grad_enabled(), lib.is_inference_mode_enabled())
