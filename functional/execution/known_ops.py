"""Ops with the shapes that they take: what is known of them, whatever program they are in."""

from __future__ import annotations

import zlib
from typing import Any

from ..program.program import Aval

_MAX_OPS = 1 << 16
_known: dict[Any, SingleOp] = {}


class SingleOp:
    """An op by itself, with the shapes that it takes.

    Attributes:
      call, avals: what is called, and the abstract values that it takes.
      run: computes it; None before it ran.
      namespace: the op's, or that of the op that it is the gradient of.
      weight: how many ops of a program it counts for.
    """

    __slots__ = ("call", "avals", "run", "namespace", "weight", "_mark")

    def __init__(self, call: Any, avals: tuple[Aval, ...]) -> None:
        self.call, self.avals = call, avals
        self.run: Any = None
        self.namespace, self.weight = _namespace_of(call), _weight_of(call)
        self._mark = -1

    @property
    def mark(self) -> int:
        """A number that equal ops have in common, and others mostly do not."""
        if self._mark < 0:
            self._mark = zlib.crc32(f"{self.call!r} {self.avals!r}".encode())
        return self._mark


def single_op(call: Any, avals: tuple[Aval, ...]) -> SingleOp:
    """Return the one `SingleOp` of a call that takes these abstract values."""
    key = (call, avals)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MAX_OPS:
            _known.pop(next(iter(_known)), None)
        found = _known[key] = SingleOp(call, avals)
    return found


def _namespace_of(call: Any) -> str | None:
    inner = getattr(call, "call", None) or getattr(call, "source", None) or call
    return getattr(getattr(inner, "op", None), "namespace", None)


def _weight_of(call: Any) -> int:
    """Return how many ops a call counts for; a gradient twice what it differentiates does."""
    inner = getattr(call, "call", None) or getattr(call, "source", None)
    if inner is not None:
        return 2 * _weight_of(inner)
    return int(getattr(getattr(call, "op", None), "weight", 1))


def forget_known_ops() -> None:
    """Forget all, and what ran them."""
    for op in [*_known.values()]:
        op.run = None
    _known.clear()
