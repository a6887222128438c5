"""`backward`, `autograd.grad` and `.grad`, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.sameness import same

import leafax


def test_backward() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
        y = x * x + 2
        z = y.sum()
        z.backward()
        first = x.grad
        see.gradients(x.grad)
        (x * 3).sum().backward()
        see.gradients(x.grad)
        see(x.grad is first)
        see(y.grad)  # warns
        x.grad = None
        y = x.sin()
        y.backward(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
        see.gradients(x.grad)
        x.grad.zero_()
        y = x.exp()
        y.backward(gradient=y.detach(), retain_graph=True)
        y.sum().backward()
        see.gradients(x.grad)


def test_backward_with_cuts_everywhere() -> None:
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=torch.float64, requires_grad=True)
        w = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        y = x @ w
        y.retain_grad()
        z = y.tanh() * 2
        v = z[0]
        v.mul_(3)
        z.sum().backward(retain_graph=True)
        see.gradients(x.grad, w.grad, y.grad)
        x.grad = None
        with torch.no_grad():
            w -= 0.1 * w.grad
        (x.sum() * w.sum()).backward()
        see.gradients(x.grad, w.grad)
        see(z, v, w)

    same(program, everywhere=True)


def test_second_backward_and_freed_graphs() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        see.attempt(y.backward)
        see.attempt(lambda: y.grad_fn.next_functions[0][0]._saved_self)
        z = (x + 1).sum()  # saves nothing
        z.backward()
        see.attempt(z.backward)
        see.gradients(x.grad)
        u = (x * x).sum()
        u.backward(retain_graph=True)
        u.backward()
        see.attempt(u.backward)
        see.gradients(x.grad)


@pytest.mark.parametrize("batched", [False, True])
def test_grad(batched: bool) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
        w = torch.tensor([2.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
        y = x * w
        if batched:
            rows = torch.eye(3, dtype=torch.float64)
            see.gradients(*torch.autograd.grad(y, (x, w), rows, is_grads_batched=True))
            return
        see.gradients(*torch.autograd.grad(y.sum(), x, retain_graph=True))
        see.gradients(
            *torch.autograd.grad([y, x.sin()], [x, w], [y.detach(), w], retain_graph=True)
        )
        see.gradients(*torch.autograd.grad(y.sum(), [x, y], retain_graph=True))
        loose = torch.ones(3, dtype=torch.float64, requires_grad=True)
        grads = torch.autograd.grad(y.sum(), [x, loose], allow_unused=True, retain_graph=True)
        see(grads[1])
        grads = torch.autograd.grad(y.sum(), [x, loose], materialize_grads=True, retain_graph=True)
        see.gradients(*grads)
        turned = torch.ones(2, 3).t().requires_grad_()
        zeros = torch.autograd.grad(y.sum(), turned, materialize_grads=True, retain_graph=True)
        see(zeros[0], zeros[0].stride())
        see.attempt(torch.autograd.grad, y.sum(), [x, loose], retain_graph=True)
        see.attempt(torch.autograd.grad, y.sum(), x, only_inputs=False)
        see(x.grad, w.grad)


def test_create_graph() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        see(g.requires_grad, g.is_leaf, g.detach())
        (h,) = torch.autograd.grad((g * g).sum(), x, create_graph=True)
        see(h.requires_grad, h.detach())
        h.sum().backward()
        see.gradients(x.grad)
        x.grad = None
        z = (x.sin() * x).sum()
        z.backward(create_graph=True)  # warns
        see(x.grad.requires_grad)
        see.gradients(x.grad.detach())


def test_inputs() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        w = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
        y = x * w
        z = (y * y).sum()
        z.backward(inputs=[x], retain_graph=True)
        see(w.grad)
        see.gradients(x.grad)
        z.backward(inputs=[y, w], retain_graph=True)
        see(y.retains_grad)
        see.gradients(x.grad, w.grad, y.grad)
        see.attempt(z.backward, inputs=[])
        see.attempt(z.backward, inputs=torch.ones(2))


def test_several_roots_and_shared_parts() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = x.exp()
        a, b = y.sum(), (y * y).sum()
        torch.autograd.backward([a, b])
        see.gradients(x.grad)
        y = x.exp()
        torch.autograd.backward([y, y.sum()], [torch.ones_like(y), None], retain_graph=True)
        see.gradients(x.grad)
        torch.autograd.backward([y], grad_tensors=[y.detach()])
        see.gradients(x.grad)


def test_complex_gradients() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128, requires_grad=True)
        y = (x * x * (2 - 1j)).abs().sum()
        y.backward()
        see.gradients(x.grad)
        z = x * x.conj()
        z.backward(torch.tensor([1j, 2.0], dtype=torch.complex128))
        see.gradients(x.grad)
        see.attempt(x.sum().backward)
        x.grad = None
        torch.view_as_real(x).pow(2).sum().backward()
        see.gradients(x.grad)
        x.real.sum().backward()
        see.gradients(x.grad)


def test_what_a_second_backward_finds_freed() -> None:
    """Numbers that met tensors are saved like tensors, and so is an op inside CopySlices."""

    def program(lib: Any, see: Any) -> None:
        def through_view(write: Any) -> Any:
            def fn(x: Any) -> Any:
                y = x.clone()
                write(y[:2])
                return y

            return fn

        for fn in (
            lambda x: x * 2, lambda x: 2 * x, lambda x: x / 4, lambda x: x + 1, lambda x: 1 - x,
            lambda x: x.clone().mul_(2), lambda x: lib.ones(3).mul_(x * 2), lambda x: x.neg(),
            through_view(lambda v: v.add_(1)), through_view(lambda v: v.fill_(0)),
            through_view(lambda v: v.mul_(2)), lambda x: (x * 2).unsqueeze(0)[..., 1:],
        ):  # fmt: skip
            x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
            y = fn(x)
            y.sum().backward()
            see.attempt(y.sum().backward)
            see.gradients(x.grad)

    same(program)


@pytest.mark.parametrize("turn", ["t_()", "swapaxes_(0, 1)", "unsqueeze_(0)", "transpose_(0, -1)"])
@pytest.mark.parametrize("backward", ["y.backward(t.ones_like(y))", "t.autograd.grad(y, x, y * 1)"])
def test_the_gradient_of_what_was_turned_in_no_grad(turn: str, backward: str) -> None:
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            eval(f"y.{turn}")
        see(eval(backward, {"t": torch, "x": x, "y": y}))
        see(x.grad)

    same(program)


def test_a_remembered_pass_needs_what_an_earlier_one_freed() -> None:
    """Both loops record the same; only in the first one the graph is kept."""

    def twice(lib: Any, keep: bool) -> Any:
        if lib is leafax:
            leafax.synchronize()
        b = lib.tensor([1.0, 2.0], requires_grad=True)
        d = b * 2.0
        (d * d).sum().backward(retain_graph=keep)
        try:
            (d * d).sum().backward()
        except RuntimeError as e:
            return str(e)
        return b.grad.tolist()

    for keep in (True, True, True, True, False, False, False, True):
        assert twice(leafax, keep) == twice(torch, keep)
