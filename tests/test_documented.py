"""What PyTorch's documentation shows, as far as leafax once did otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sameness import Log, same


def numpy_functions(torch: Any) -> Any:
    """The Functions of notes/extending.func: NumPy sorts, a rule says how a batch."""

    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            array = x.numpy()
            order = np.argsort(array, axis=dim)
            back = np.argsort(order, axis=dim)
            found = np.take_along_axis(array, order, axis=dim)
            return torch.tensor(found), torch.tensor(order), torch.tensor(back)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _, order, back = output
            ctx.mark_non_differentiable(order, back)
            ctx.save_for_backward(order, back)
            ctx.dim = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any, _0: Any, _1: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(grad, back, order, ctx.dim), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int) -> Any:
            x = x.movedim(in_dims[0], 0)
            return Sort.apply(x, (dim % (x.dim() - 1)) + 1), (0, 0, 0)

    class Take(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, order: Any, back: Any, dim: int) -> Any:
            return torch.tensor(np.take_along_axis(x.numpy(), order.numpy(), dim))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[1:3])
            ctx.dim = inputs[3]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(grad, back, order, ctx.dim), None, None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, order: Any, back: Any, dim: int) -> Any:
            x, order, back = [
                t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)
                for t, d in zip((x, order, back), in_dims[:3], strict=True)
            ]
            return Take.apply(x, order, back, (dim % (x.dim() - 1)) + 1), 0

    return lambda x: Sort.apply(x, -1)[0]


MAPPED: dict[str, Any] = {
    "alone": lambda t, sort, x: t.vmap(sort)(x),
    "after ops": lambda t, sort, x: t.vmap(lambda x: sort(x.exp() * 2) + x)(x),
    "of what was written to": lambda t, sort, x: t.vmap(lambda x: sort(x.clone().mul_(-1)))(x),
    "nested": lambda t, sort, x: t.vmap(t.vmap(lambda x: sort(x * 2)))(t.stack([x, -x])),
    "gradients": lambda t, sort, x: t.vmap(t.func.grad(lambda x: sort(x)[1].sin()))(x),
    "jacrev": lambda t, sort, x: t.func.jacrev(sort)(x),
    "hessian": lambda t, sort, x: t.func.jacrev(t.func.jacrev(lambda x: sort(x)[0, 1].exp()))(x),
}


@pytest.mark.parametrize("how", MAPPED)
def test_functions_that_leave_torch_are_mapped_by_their_rule(how: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.3, 0.2]])
        log.gradients(MAPPED[how](torch, numpy_functions(torch), x).contiguous() + 0)


def test_generators_of_threads_that_load_data() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        log(torch.random.thread_safe_generator(), torch.thread_safe_generator())
        log(torch.rand(2, generator=torch.thread_safe_generator()).shape)
