"""In-place writes, versions, saved tensors that changed, `.data` and `detach`, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from sameness import same


def test_arithmetic_counts_versions() -> None:
    def program(torch: Any, see: Any) -> None:
        a = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        a += 1
        a.mul_(2).sub_(1)
        see(a, a._version)
        a[0] = 7
        a[1:] = torch.tensor([1.0, 0.0], dtype=torch.float64)
        a[a > 5] = 0.5
        a.copy_(a * 2)
        see(a)
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        y += a
        y *= x
        y.sin_()
        see(y, y.grad_fn)
        y.sum().backward()
        see.gradients(x.grad)
        y = x * 2
        y.zero_()
        y.add_(x)
        see(y, y.grad_fn)

    same(program, everywhere=True)


WRITES = {
    "leaf": lambda x, y: x.add_(1),
    "leaf item": lambda x, y: x.__setitem__(0, 1.0),
    "view of leaf": lambda x, y: x[0].mul_(2),
    "mask": lambda x, y: x.__setitem__(x > 0, 1.0),
    "shape": lambda x, y: y[0].add_(y * 2),
    "dtype": lambda x, y: (y > 0).long().add_(0.5),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_forbidden(write: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        with see.catch():
            write(x, y)
        with torch.no_grad(), see.catch():
            write(x, y)
        see(x, y)


MODIFY = {
    "itself": lambda y: y.add_(1),
    "a view": lambda y: y[0].zero_(),
    "detached": lambda y: y.detach().mul_(2),
    "copy": lambda y: y.copy_(y.detach()),
    "twice": lambda y: y.add_(1).add_(1),
}


@pytest.mark.parametrize("modify", MODIFY.values(), ids=MODIFY)
@pytest.mark.parametrize("op", ["mul", "exp", "tanh", "sin"])
def test_saved_tensors_changed(modify: Any, op: str) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
        y = x * 3
        z = y * y if op == "mul" else getattr(y, op)()
        modify(y)
        see.attempt(lambda: z.sum().backward())
        y = (x * 2).exp()
        modify(y)
        see.attempt(lambda: y.sum().backward())


def test_data_and_detach() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        d, e = x.detach(), x.data
        see(d, e)
        d.add_(1)
        see(x, d, e)
        e.mul_(2)
        see(x, d, e, x._version, d._version, e._version)
        x.data = torch.tensor([5.0, 6.0], dtype=torch.float64)
        see(x, d)
        y = x * 2
        see(y.detach_(), y.is_leaf)
        (x * y).sum().backward()
        see.gradients(x.grad)
        v = (x * 2)[0]
        see.attempt(v.detach_)
        c = x.clone()
        c.add_(1)
        see(c, x)


def test_requires_grad() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, dtype=torch.float64)
        see(x.requires_grad_() is x, x)
        x.requires_grad = False
        see(x)
        y = x.requires_grad_() * 2
        see.attempt(y.requires_grad_, False)
        see.attempt(y.requires_grad_)
        see.attempt(setattr, y, "requires_grad", True)
        see.attempt(setattr, y, "requires_grad", False)
        see.attempt(torch.ones(2, dtype=torch.int64).requires_grad_)
        see.attempt(setattr, torch.ones(2, dtype=torch.int64), "requires_grad", True)
        v = x.detach()[0]
        v.requires_grad_()
        see(v)
