"""Functions of NumPy inside `vmap`: PyTorch has no batching rule for them, it loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._core.handle import Handle
from .._core.trie import local
from ._levels import Level, innermost, running, suspended
from ._refusals import look
from ._trees import flatten, unflatten


def loop(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`fn` of one example after the other, its results put together.

    An argument differs from example to example.
    """
    leaves, structure = flatten((args, kwargs))
    level = max(_levels(leaves), key=lambda x: x.number)
    if level is not running.levels[-1]:
        with suspended():
            return loop(fn, args, kwargs)
    batches = [level.batch_of(x) if isinstance(x, Handle) else (x, None) for x in leaves]
    with suspended():
        local.look = look  # without a cut
        made = []
        for i in range(level.size):
            given = [x if dim is None else x.select(dim, i) for x, dim in batches]
            more, named = unflatten(structure, given)
            made.append(flatten(fn(*more, **named)))
        wholes = [_stacked(parts) for parts in zip(*[found for found, _ in made], strict=True)]
    return unflatten(made[0][1], [level.example(x, 0) for x in wholes])


def _levels(leaves: list[Any]) -> Iterator[Level]:
    for x in leaves:
        level = innermost(x) if isinstance(x, Handle) else None
        if level is not None:
            yield level


def _stacked(parts: Any) -> Any:
    from .._api.functions import stack  # type: ignore[attr-defined]

    return stack(parts)
