"""`autograd.graph.Node`, the class that all graph nodes are instances of."""

from __future__ import annotations

from typing import Any

from sameness import Log, same


def test_instances() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        node = torch.autograd.graph.Node
        functions = torch._C._functions

        class Alike(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                log(isinstance(ctx, node))
                return x

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                log(isinstance(ctx, node))
                return grad

        a = torch.ones(3, requires_grad=True)
        b = a.exp()
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            hooked = a.exp()
        c = Alike.apply(b)
        for fn in (b.grad_fn, b.grad_fn.next_functions[0][0], c.grad_fn, hooked.grad_fn):
            log(isinstance(fn, node), issubclass(type(fn), node), node in type(fn).mro())
        log(isinstance(functions.AccumulateGrad, node), issubclass(functions.AccumulateGrad, node))
        log(issubclass(functions.DelayedError, node), isinstance(None, node), isinstance(1, node))
        log(isinstance(node, node), issubclass(node, node))
        log(issubclass(torch.autograd.function.BackwardCFunction, node))
        log.attempt(node)
        c.sum().backward()


def test_mark_dirty_of_another_tensor_warns() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Other(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                c = a * 3
                c.add_(1)
                ctx.mark_dirty(c)
                return c

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 3

        a = torch.ones(2, requires_grad=True)
        log(Other.apply(a.clone()))
        with torch.no_grad():
            log(Other.apply(a.clone()))
