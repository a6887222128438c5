"""The conditions of a replay: what must be as it was, beside the arguments."""

from __future__ import annotations

from operator import attrgetter

from .._core.trie import local
from .python_state import PythonState
from .recorded import Recorded

#: What a replay returns that does not fit.
MISS = object()

_grad = attrgetter("_grad")
_hooks = attrgetter("_hooks", "_post_accumulate_hooks")


class Conditions:
    """All beside the arguments that a recorded call depends on."""

    def __init__(self, recorded: Recorded, python: PythonState) -> None:
        self._mode, self._python = local.mode, python
        self._leaves = [leaf for leaf, _ in recorded.grads_before]
        self._had_grad = [had for _, had in recorded.grads_before]
        self._hooks = list(map(_hooks, self._leaves))

    def hold(self) -> bool:
        """Tell whether the mode, what Python reads, gradients and hooks are as they were."""
        return (
            local.mode is self._mode
            and self._python.holds()
            and [grad is not None for grad in map(_grad, self._leaves)] == self._had_grad
            and list(map(_hooks, self._leaves)) == self._hooks
        )
