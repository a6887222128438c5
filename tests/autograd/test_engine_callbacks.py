"""Callbacks run at the end of a backward pass, and passes may nest deeply."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from helpers.sameness import Log, same

import leafax


def test_callbacks_run_when_their_pass_is_over() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        engine = torch.autograd.Variable._execution_engine
        log.attempt(engine.queue_callback, lambda: None)
        x = torch.ones(2, requires_grad=True)

        def run(callback: Any, **options: Any) -> None:
            y = x * 2
            y.register_hook(lambda grad: engine.queue_callback(callback))
            log.attempt(y.sum().backward, **options)
            log.gradients(x.grad.detach())

        tell = lambda: log("called", torch.is_grad_enabled(), x.grad is not None)  # noqa: E731
        run(tell)
        with warnings.catch_warnings():  # PyTorch's of a cycle comes once a process
            warnings.simplefilter("ignore")
            run(tell, create_graph=True)
        run(lambda: engine.queue_callback(tell))

        def fail() -> None:
            raise ValueError("in a callback")

        run(fail)
        run(tell)


def test_callbacks_of_a_pass_within_a_pass() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        engine = torch.autograd.Variable._execution_engine
        x = torch.ones(2, requires_grad=True)
        y = x * 2

        def outer(grad: Any) -> None:
            engine.queue_callback(lambda: log("outer"))
            with torch.enable_grad():
                z = torch.ones(2, requires_grad=True) * 2
                z.register_hook(lambda grad: engine.queue_callback(lambda: log("inner")))
                z.sum().backward()
            log("after")

        y.register_hook(outer)
        log(engine.is_checkpoint_valid())
        y.register_hook(lambda grad: log(engine.is_checkpoint_valid()))
        torch.autograd.grad(y.sum(), x)


def test_passes_nest_deeper_than_python_calls() -> None:
    class Deep(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with leafax.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if ctx.x > 0:
                with leafax.enable_grad():
                    Deep.apply(ctx.x).sum().backward()
            else:
                reached.append(len(leafax._core.trie.local.autograd.tasks))
            return grad

    reached: list[int] = []
    limit = sys.getrecursionlimit()
    Deep.apply(leafax.tensor(300.0, requires_grad=True)).sum().backward()
    assert reached == [300]
    assert sys.getrecursionlimit() == limit
