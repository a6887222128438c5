"""Views: what a write through one does to the others, and to their history, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from sameness import same

VIEWS = {
    "select": lambda y: y[0],
    "slice": lambda y: y[:, 1:],
    "step": lambda y: y[:, ::2],
    "t": lambda y: y.t(),
    "view": lambda y: y.view(-1),
    "view of view": lambda y: y.t()[1:].unsqueeze(0),
    "diagonal": lambda y: y.diagonal(),
    "narrow": lambda y: y.narrow(1, 0, 2),
    "permute": lambda y: y.permute(1, 0),
    "squeeze": lambda y: y.unsqueeze(0).squeeze(0),
    "transpose": lambda y: y.transpose(0, 1)[0],
    "reshape": lambda y: y.reshape(3, 2),
    "flatten": lambda y: y.flatten()[1:4],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_write_through_a_view(view: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        y = x * 2
        before = view(y)
        v, other = view(y), y[1]
        see(v, v._base is y, v.stride(), v.storage_offset(), v.is_contiguous())
        v.mul_(x.sum())
        see(y, v, other, before, y.grad_fn, v.grad_fn, other.grad_fn)
        y.add_(1)
        v.sin_()
        see(y, v, other)
        (y * other.sum()).sum().backward()
        see.gradients(x.grad)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_write_to_a_plain_base(view: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        b = torch.arange(6, dtype=torch.float64).reshape(2, 3)
        v = view(b)
        b.mul_(3)
        see(v, b)
        v.copy_(v.detach().clone() * x)
        see(b, v)
        b.sum().backward()
        see.gradients(x.grad)


def test_views_made_without_grad() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            u, v = x[0], y[0]
        see(u, v)
        see((u * 2).grad_fn.next_functions)
        see.attempt(lambda: u.sum().backward())
        with see.catch():
            u.mul_(2)
        with see.catch():
            v.mul_(2)
        with torch.no_grad():
            u.mul_(2)
            x[1] = 5.0
        see(x)
        y.mul_(2)
        see.attempt(lambda: v.grad_fn)
        see.attempt(lambda: v * 2)
        see(v.requires_grad)


def test_views_of_several_results() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        a, b = y.unbind(0)
        see(a, b)
        see.attempt(a.mul_, 2)
        with torch.no_grad():
            c, d = y.split(1)
        see.attempt(c.mul_, 2)
        y.mul_(2)
        see.attempt(lambda: b.grad_fn)
        see.attempt(lambda: b + 1)


def test_base_changes_its_flags() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        b = torch.ones(2, 3, dtype=torch.float64)
        v = b[0]
        b.requires_grad_()
        see(v)
        see((v * 2).grad_fn.next_functions)
        b.requires_grad_(False)
        see(v)


def test_copies_are_no_views() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        y = x * 2
        r, f, c = y.t().reshape(6), y.t().flatten(), y.t().contiguous()
        see(r, f, c, r.grad_fn, f.grad_fn)
        y.zero_()
        see(r, f, c)
        flat = torch.ones(3)
        see(flat.flatten() is flat, flat.contiguous() is flat)


def test_retained_gradient_moves_with_writes() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        see(y.retains_grad)
        y.sum().backward()
        see.gradients(y.grad)
        y = x * 2
        y.retain_grad()
        y[0].mul_(3)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        see.gradients(y.grad, x.grad)
