"""Autocast as it was, for what is called again later: checkpoints."""

from __future__ import annotations

from typing import Any

from ..._core.cast_tensors import casts
from .casts import settle, state


class Autocast:
    """Hold what a thread asked of autocast; as a context, ask it again.

    Weights that are cast inside are forgotten after it, unless an `autocast` block is around it:
    they may be written to before the next one.
    """

    def __init__(self) -> None:
        self._asked = _asked()
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(_asked())
        state.nesting += 1
        _ask(*self._asked)

    def __exit__(self, *exc: Any) -> None:
        state.nesting -= 1
        if state.nesting == 0:
            casts.kept.clear()
        _ask(*self._before.pop())


def _asked() -> Any:
    return frozenset(state.enabled), dict(state.dtypes), casts.enabled


def _ask(enabled: Any, dtypes: Any, cache_enabled: bool) -> None:
    state.enabled, state.dtypes = set(enabled), dict(dtypes)
    casts.enabled = cache_enabled
    settle()
