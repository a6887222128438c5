"""Hooks on tensors and nodes: order, removal, changed gradients, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import same


def test_order_and_removal() -> None:
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = x * 2
        first = y.register_hook(lambda g: see("first") or g * 2)
        y.register_hook(lambda g: see("second", g.sum()))
        y.retain_grad()
        x.register_hook(lambda g: see("leaf") or g + 1)
        x.register_post_accumulate_grad_hook(lambda t: see("post", t.grad.sum(), t is x))
        z = (y * y).sum()
        z.register_hook(lambda g: see("root"))
        z.backward(retain_graph=True)
        see.gradients(x.grad, y.grad)
        first.remove()
        first.remove()
        with y.register_hook(lambda g: g * 0):
            z.backward(retain_graph=True)
        z.backward()
        see.gradients(x.grad, y.grad)

    same(program, everywhere=True)


def test_nodes() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = x * 2
        node = y.grad_fn
        see(node is y.grad_fn, node.name(), node.metadata)
        node.metadata["note"] = 1
        see(y.grad_fn.metadata)
        node.register_prehook(lambda outs: see("pre") or (outs[0] * 3,))
        node.register_hook(lambda ins, outs: see("post", len(outs)))
        leaf = node.next_functions[0][0]
        leaf.register_prehook(lambda outs: (outs[0] + 1,))
        leaf.register_hook(lambda ins, outs: see(ins, outs[0].sum()))
        see(leaf.variable is x)
        y.sum().backward()
        see.gradients(x.grad)


RESULTS = {
    "number": lambda g: 3,
    "shape": lambda g: g.sum(),
    "dtype": lambda g: g.float(),
    "young dtype": lambda g: g.bfloat16(),
    "complex": lambda g: g * 1j,
    "raises": lambda g: 1 / 0,
    "none": lambda g: None,
}


@pytest.mark.parametrize("hook", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("leaf", [False, True])
def test_results(hook: Any, leaf: bool) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = x * 2
        (x if leaf else y).register_hook(hook)
        see.attempt(lambda: (y * 3).sum().backward())
        see.gradients(x.grad)


def test_forbidden() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        a = torch.ones(2)
        x = torch.ones(2, requires_grad=True)
        see.attempt(a.register_hook, print)
        see.attempt(a.retain_grad)
        see.attempt(a.register_post_accumulate_grad_hook, print)
        see.attempt((x * 2).register_post_accumulate_grad_hook, print)
        see(x.retain_grad(), x.retains_grad)


def test_hooks_and_writes() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: see("before", g.sum()))
        y.mul_(3)
        y.register_hook(lambda g: see("after", g.sum()))
        v = y[0]
        v.register_hook(lambda g: see("lost"))
        v.mul_(2)
        v.register_hook(lambda g: see("view", g.sum()))
        (y.sum() + v.sum()).backward()
        see.gradients(x.grad)
