"""Tensors that hold a value of the running trace, or what writes made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..._core.trie import NODE, Value, local
from ..._tracing.leaf_tuples import mark_all_entered


class Holders:
    """The tensors by what they hold, for a cut asks of each value that its graph keeps.

    A tensor that was written to holds another value, which was made of the one asked for. Where
    none does it is what shares storage and shape, by preference with the same `requires_grad`.
    A tensor with the history of the write comes before one that only shares the memory, as what a
    pack hook saw does.
    """

    def __init__(self, living: Iterable[Any]) -> None:
        self.living = living
        self.made: dict[Value, Any] | None = None

    def of(self, value: Value) -> Any:
        """Get the first of the tensors that fits, None if none does."""
        if self.made is None:
            self.made = self._look()
        found = self.made.get(value)
        if found is None:
            by_flag = self.places.get((value.storage, value.shape))
            if by_flag is not None:
                flag = value.requires_grad
                found = by_flag[flag if flag in by_flag else not flag]
        return found

    def _look(self) -> dict[Value, Any]:
        mark_all_entered(local.trace)
        living = [
            t for t in self.living
            if t is not None and not (t._store is not None and t is t._store.cell)
        ]  # fmt: skip
        self.places: dict[Any, dict[bool, Any]] = {}
        for t in living:
            v = t._stale if t._stale is not None else t._v
            self.places.setdefault((v.storage, v.shape), {}).setdefault(v.requires_grad, t)
        made: dict[Value, Any] = {}
        for t in sorted(living, key=lambda t: t._v.role != NODE):
            for before in _made_of(t._stale if t._stale is not None else t._v):
                if before in made:  # and so is all that this was made of
                    break
                made[before] = t
        return made


def holder_of(value: Value) -> Any:
    """Find the living tensor that held `value`."""
    return Holders(r() for r in local.trace.refs).of(value)


def _made_of(value: Value) -> Iterator[Value]:
    """Yield the value, and what writes and views in place made it of, the last one first."""
    storage = value.storage
    while value.storage == storage:
        yield value
        op = getattr(getattr(value.state, "call", None), "op", None)
        if op is None or not (op.overwrites or op.view and op.name.endswith("_")):
            return
        value = value.state.operands[1 if op.random else 0]
