"""Saved-tensor hooks in a backward that is differentiated again: its ops save through them, too.

Those of elementwise ops pack what PyTorch's formulas save. Other gradients may be one node, which
packs fewer tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "pow": lambda a: a**3,
    "mul": lambda a: a * a * a,
    "sin": lambda a: a.sin(),
    "exp": lambda a: (a * 2).exp(),
    "tanh": lambda a: a.tanh(),
}


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_double_backward(fn: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        calls = []

        def pack(x: Any) -> Any:
            calls.append("pack")
            return x * 2

        def unpack(x: Any) -> Any:
            calls.append("unpack")
            return x

        def doubled() -> Any:
            return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

        def twice(forward: bool, backward: bool) -> None:
            a = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
            with doubled() if forward else torch.enable_grad():
                s = FUNCTIONS[fn](a).sum()
            with doubled() if backward else torch.enable_grad():
                (g,) = torch.autograd.grad(s, a, create_graph=True)
                g.sum().backward()
            log.gradients(g.detach(), a.grad)
            log(calls.count("pack"))
            calls.clear()

        twice(True, False)
        twice(False, True)
        twice(True, True)


def test_hooks_of_a_node_that_come_while_it_unpacks_see_nothing_that_it_was_given() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def unpack(t: Any) -> Any:
            torch._C._current_autograd_node().register_hook(seen)
            return t

        def seen(outs: Any, ins: Any) -> None:
            log(type(outs).__name__, len(outs), type(ins).__name__, ins)

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                ctx.register_hook(seen)
                log(ctx.saved_tensors)
                return g[0] * 2 + g[1] * 3

        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            outs = [torch.var_mean(x, dim=0)[0], x.exp(), Twice.apply(x)[1]]
        outs.append(Twice.apply(x)[0])
        for y in outs:
            y.sum().backward()
