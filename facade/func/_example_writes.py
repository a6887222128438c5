"""Writes to the examples that a mapped function was given.

They are forbidden where the same write to the batch is. What is written to an example is written
to the batch, once the function has returned: as autograd saw it, or behind its back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core.grad_modes import no_grad
from .._core.transforms_running import LEAF_WRITE, is_view_of
from .._core.trie import local
from .._ops.writes.apply_inplace import check_inplace
from .._storage.enter import enter
from ._level import Example, Level
from ._level_stack import LevelStack

_SWAPS = frozenset({"t", "transpose", "swapaxes", "swapdims"})


class Write:
    """Changes of an example in place, to be carried over to its batch.

    Attributes:
      turns: views in place, see `_turns`.
      counts: how many writes to its data there were.
      made: what the batch holds then; nothing if it was turned only.
    """

    def __init__(self, example: Example, level: Level) -> None:
        self.example = example
        self.turns = list(_turns(example))
        self.counts = example.writes - len(example.first._lens)
        self.seen = enter(example.first, local.trace).edge is not example.edge
        self.made: list[Any] = []
        if self.counts:
            dim = self.turns[-1][2] if self.turns else example.dim
            self.made = level.map([example.first], [dim], sparing=True)

    def carry(self) -> None:
        """Change the batch as the example was changed."""
        if self.seen:
            self._carry()
        else:
            with no_grad():
                self._carry()

    def _carry(self) -> None:
        batch = self.example.batch
        for name, args, _ in self.turns:
            getattr(batch, name)(*args)
        for made in self.made:
            batch.copy_(made)
            batch._vc[0] += self.counts - 1


def _turns(example: Example) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield views of the example in place as methods of the batch, and its mapped dimension."""
    at, shape = example.dim, list(example.batch.shape)
    for op, args, kwargs in example.first._lens:
        given = [*args, *kwargs.values()]
        rank = len(shape) - 1
        if op.name in _SWAPS:
            one, two = (_up(d, rank, at) for d in given or (0, max(rank - 1, 0)))
            shape[one], shape[two] = shape[two], shape[one]
            yield "transpose_", (one, two), at
        elif op.name == "unsqueeze":
            place = given[0] % (rank + 1)
            place += place >= at
            at += place < at
            shape.insert(place, 1)
            yield "unsqueeze_", (place,), at
        elif op.name == "squeeze" and len(given) == 1 and isinstance(given[0], int):
            place = _up(given[0], rank, at)
            if rank and shape[place] == 1:
                at -= place < at
                del shape[place]
                yield "squeeze_", (place,), at
            else:
                yield "transpose_", (place, place), at
        else:
            raise NotImplementedError(
                f"`{op.name}_` of an argument of a mapped function is not implemented in leafax"
            )


def _up(dim: int, rank: int, at: int) -> int:
    """Return an example's dimension as one of a batch that is mapped over `at`."""
    return at if rank == 0 else dim % rank + (dim % rank >= at)


class ExampleWrites(LevelStack):
    """Forbid writes to examples where the same write to the batch is forbidden."""

    def refuse_argument_write(self, t: Any) -> None:
        """Raise for a recorded write to an example of a leaf, or to a view of one."""
        for level in reversed(self.levels):
            for e in level.examples:
                if e.first is t or is_view_of(t, e.first):
                    _check_batch(e.batch, e.first is t)


def _check_batch(batch: Any, itself: bool) -> None:
    try:
        check_inplace(batch, True)
    except RuntimeError as refusal:
        if itself or str(refusal) != LEAF_WRITE:
            raise
        raise RuntimeError("a view of " + LEAF_WRITE) from None
