"""Functions of NumPy inside `vmap`: PyTorch has no batching rule for them, it loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from leafax.functional.program.op import TABLE

from .._core.handle import Handle
from .._core.trie import local
from .._dispatch.record import apply
from ._level import Level
from ._level_stack import LevelStack
from ._trees import flatten, unflatten


class Loops(LevelStack):
    """Call a function on one example after the other."""

    def loop(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `fn` on one example after the other and stack its results.

        Args:
          args, kwargs: of `fn`; a tensor among them differs from example to example.
        """
        leaves, structure = flatten((args, kwargs))
        level = max(self._levels_of(leaves), key=lambda x: x.number)
        if level is not self.levels[-1]:
            with self.suspended():
                return self.loop(fn, args, kwargs)
        batches = [level.find_batch(x) if isinstance(x, Handle) else (x, None) for x in leaves]
        with self.suspended():
            local.vmap = self  # a look does not cut, also outside of the outermost level
            made = []
            for i in range(level.size):
                given = [x if dim is None else x.select(dim, i) for x, dim in batches]
                more, named = unflatten(structure, given)
                made.append(flatten(fn(*more, **named)))
            found = zip(*[parts for parts, _ in made], strict=True)
            wholes = [apply(TABLE["stack"], parts) for parts in found]
        return unflatten(made[0][1], [level.take_example(x, 0) for x in wholes])

    def _levels_of(self, leaves: list[Any]) -> Iterator[Level]:
        for x in leaves:
            level = self.innermost(x) if isinstance(x, Handle) else None
            if level is not None:
                yield level
