"""Graphs and views of functions that PyTorch makes of several ops; gradients through results."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import same
from helpers.tensors import numbers


def test_graphs_of_composite_functions() -> None:
    def program(lib: Any, see: Any) -> None:
        x, v = numbers(lib, 2, 3, requires_grad=True), numbers(lib, 3, requires_grad=True)
        z = lib.view_as_complex(numbers(lib, 3, 2)).requires_grad_()
        for made in (
            1 / (x + 5), 2.5 / x, lib.outer(v, v), x @ v, v @ v, x.split([1, 1])[1],
            x.tensor_split(2)[1], x.tensor_split((1,), dim=1)[1], x.hsplit(3)[2], z.real, z.imag,
            z.conj(), x.conj(), lib.real(z), x.adjoint(), z.view(1, 3).mH, z.view(1, 3).H,
        ):  # fmt: skip
            see(made)
            see(made.grad_fn)
        x.tensor_split(2)[0].sum().backward()
        (z.real * z.imag).sum().backward()
        see.gradients(x.grad, z.grad)

    same(program)


def test_a_view_needs_strides_that_allow_it() -> None:
    def program(lib: Any, see: Any) -> None:
        x = numbers(lib, 2, 3, requires_grad=True)
        see.attempt(x.t().view, -1)
        see.attempt(x.t().view, 3, 1, 2)
        see.attempt(x[:, :2].view, 4)
        see.attempt(x.t().unflatten, 0, (3, 1))
        see.attempt(x.expand(2, 2, 3).view, 4, 3)
        see.attempt(x.t().reshape, -1)

    same(program)


def test_as_strided_of_a_view_counts_in_its_storage() -> None:
    def program(lib: Any, see: Any) -> None:
        for view in (lambda x: x[1:], lambda x: x.t(), lambda x: x[:, 1], lambda x: x.view(-1)[2:]):
            leaf = numbers(lib, 3, 3, requires_grad=True)
            x = leaf.clone()
            out = view(x).as_strided((2, 2), (3, 1), 1)
            see(out, out.stride(), out.storage_offset())
            (out * numbers(lib, 2, 2)).sum().backward()
            see.gradients(leaf.grad)
            with lib.no_grad():
                y = numbers(lib, 3, 3)
                view(y).as_strided((2,), (4,)).fill_(9)
            see(y)

    same(program)


@pytest.mark.exhaustive
def test_gradients_of_gradients_go_through_what_was_saved() -> None:
    """PyTorch differentiates `tanh` by its result: so does the gradient at that result."""

    def program(lib: Any, see: Any) -> None:
        for name in ("tanh", "exp", "sigmoid", "sqrt", "rsqrt", "reciprocal", "relu"):
            for dtype in (lib.float64, lib.complex128):
                if name in ("sigmoid", "relu") and dtype is lib.complex128:
                    continue
                x = (numbers(lib, 3) + 1).to(dtype).requires_grad_()
                y = getattr(x, name)()
                total = (y * y.conj()).sum().real
                (g,) = lib.autograd.grad(total, x, create_graph=True)
                see.gradients(*lib.autograd.grad((g * g.conj()).sum().real, [x, y]))

    same(program)


def test_functions_that_write_to_views() -> None:
    def program(lib: Any, see: Any) -> None:
        class Add(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.mark_dirty(x)
                return x.add_(y)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 2, grad * 3

        leaf, other = numbers(lib, 3, 3, requires_grad=True), numbers(lib, 2, requires_grad=True)
        x = leaf.clone()
        for write in (lambda: x[0, :2], lambda: x.t()[1:, 1], lambda: x.diagonal()[:2]):
            out = Add.apply(write(), other)
            see(out, x)
            see(x.grad_fn)
        (x * x).sum().backward()
        see.gradients(leaf.grad, other.grad)
        see.attempt(x.sum().backward)
        for bad in (leaf, leaf.view(-1), leaf.unbind()[0]):
            see.attempt(Add.apply, bad, other[:1])

    same(program)


def test_writes_through_data_leave_views_their_history() -> None:
    def program(lib: Any, see: Any) -> None:
        x = numbers(lib, 2, 3, requires_grad=True).clone()
        view = x[0]
        with lib.no_grad():
            hidden = x.view_as(x)
        x.data.mul_(2)
        view.data.add_(1)
        see(x, view, hidden)
        x.data = numbers(lib, 3)
        see(x)

    same(program)
