"""Saved-tensor hooks in a backward that is differentiated again: its ops save through them, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sameness import Log, same

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
