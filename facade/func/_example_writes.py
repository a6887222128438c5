"""Writes to what a transformed function was given: where they are forbidden, and the batch's part.

To autograd the arguments of `func.grad` and `func.vjp` are leaves, and an example of a batch is
what the batch is. What is written to an example is written to the batch, once the function has
returned: as autograd saw it, or behind its back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core.grad_modes import no_grad
from .._core.transforms_running import active
from .._core.trie import local
from .._tracing.inputs import enter
from ._levels import Example, Level, running

_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
_SWAPS = frozenset({"t", "transpose", "swapaxes", "swapdims"})


class Write:
    """What happened to an example in place.

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
        """Do the same to the batch."""
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
    """Views of the example in place, as methods of the batch, and where its dimension is then."""
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
    """A dimension of an example of this rank, as one of a batch that is mapped over `at`."""
    return at if rank == 0 else dim % rank + (dim % rank >= at)


def check_argument(t: Any) -> None:
    """Raise PyTorch's error if autograd would see a write to a leaf of a running transform."""
    for own in reversed(active.arguments):
        if own is t:
            raise RuntimeError(_LEAF)
        if _reads(t, own):
            raise RuntimeError("a view of " + _LEAF)
    for level in reversed(running.levels):
        for e in level.examples:
            if e.first is t or _reads(t, e.first):
                _check_batch(e.batch, e.first is t)


def _check_batch(batch: Any, itself: bool) -> None:
    from .._ops.writes.apply_inplace import check_inplace

    try:
        check_inplace(batch, True)
    except RuntimeError as refusal:
        if itself or str(refusal) != _LEAF:
            raise
        raise RuntimeError("a view of " + _LEAF) from None


def _reads(t: Any, own: Any) -> bool:
    """Whether autograd takes `t` for a view of `own`."""
    shares = t._shares and own._shares and t._tracked
    return bool(shares and t._base_ is not None and t._store is own._store)
