"""`autograd.graph.Node`, the class that all graph nodes are instances of."""

from __future__ import annotations

from typing import Any

from helpers.sameness import Log, same


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


def test_random_nodes() -> None:
    """Their edges are those of the operands; what draws the numbers has none."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.full((3,), 0.5, requires_grad=True)
        made = [
            torch.bernoulli(x), torch.poisson(x), torch.dropout(x, 0.5, True), (x * 1).uniform_(),
            (x * 1).bernoulli_(), (x * 1).bernoulli_(x), torch.normal(x, x), torch.normal(x, 2.0),
            torch.normal(1.0, x), (x * 1).normal_(), torch.nn.functional.rrelu(x, training=True),
        ]  # fmt: skip
        for y in made:
            edges = [(n and n.name(), k) for n, k in y.grad_fn.next_functions]
            log((y.grad_fn.name(), str(edges)))
        y = (x * 1).view(3, 1)
        y[:2].normal_()
        log(str([(n and n.name(), k) for n, k in y._base.grad_fn.next_functions]))


def test_operands_that_formulas_leave_out() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        F = torch.nn.functional
        x, labels = torch.full((2, 3), 0.25), torch.tensor([0, 1])
        w = torch.ones(3, requires_grad=True)
        calls = (
            lambda: F.nll_loss(x, labels, w), lambda: F.cross_entropy(x, labels, w),
            lambda: F.binary_cross_entropy(x, x, w),
            lambda: F.multi_margin_loss(x, labels, weight=w),
            lambda: F.binary_cross_entropy_with_logits(x, x, w),
            lambda: F.binary_cross_entropy_with_logits(x, x, pos_weight=w),
            lambda: F.soft_margin_loss(x[0], w),
            lambda: F.batch_norm(x, torch.zeros(3), w, training=True),
            lambda: F.batch_norm(x, torch.zeros(3), w),
            lambda: F.instance_norm(x[None], torch.zeros(2), w[:2] * 1),
        )  # fmt: skip
        for call in calls:
            log.attempt(call)
            with torch.no_grad():
                log.attempt(call)


def test_errors_come_before_what_else_is_ready() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        def written() -> Any:
            out = x.clone().view(-1)
            out += safe
            return out

        functions = torch._C._functions
        x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        safe = functions.DelayedError("Boom!", 1)(y)
        log(safe.grad_fn._sequence_nr())
        one = torch.ones((), requires_grad=True)
        (g,) = torch.autograd.grad(Once.apply(y).sum(), y, one, create_graph=True)
        for out in (x.clone() + safe, safe * x.exp(), written(), x.exp() + g):
            with log.catch():
                out.sum().backward()
            log(x.grad, y.grad)
            x.grad = None
        with torch.no_grad():
            for made in (functions.DelayedError("Boom!", 1), functions.UndefinedGrad()):
                t = made(x)
                log(t, t.grad_fn.next_functions, made(x.detach()))
