"""What training scripts met: each as small as it can be, with torch beside it."""

from __future__ import annotations

from typing import Any

from nn.scripts import Said, agree


def test_hooks_see_gradients_that_nothing_needs() -> None:
    def script(t: Any, said: Said) -> None:
        class Two(t.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any, y: Any) -> Any:
                return x * 2, x * y

        module = Two()
        module.register_full_backward_hook(lambda _, into, out: said(into, out))
        module(t.ones(2, requires_grad=True), t.ones(2))[0].sum().backward()

    agree(script)
