"""Calls with any lengths: the pattern that their lengths have, and what it was traced to.

An episode, a sentence, the rows that a mask leaves: the same calls come with new lengths each time,
and tracing one takes milliseconds. A call that came with other lengths before is therefore traced
once with symbols for its lengths (`jax.export`'s shape polymorphism). Filling in the lengths of the
next call takes microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .symbolic_traces import LEAST, MOST_SYMBOLS, General, Sizes

if TYPE_CHECKING:
    from .program import Aval

_MOST = 1 << 31  # numbers from here on are no lengths, or too long: what takes them says so
_PATTERNS = 1024  # the most of calls that have one root


Size = Callable[[int], Any]  # what stands for a length; small ones stand for themselves


class AnyLengths:
    """A call, or anything else with an `evaluate`, that can be traced for any lengths.

    Attributes:
      general: what it and its gradients trace to, by pattern of lengths.
    """

    __slots__ = ("general",)

    def __init__(self) -> None:
        self.general: dict[Any, General] = {}

    @property
    def root(self) -> AnyLengths:
        """The object that holds `general`: the call, or what it differentiates or resizes."""
        return self

    def sized(self, size: Size) -> AnyLengths:
        """Return the same with other lengths in it: there are none."""
        return self

    def pattern(self, size: Size) -> Any:
        """Return a key that tells it from others of the same root, whatever lengths are in it."""
        return None

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the lengths in its arguments, those of one argument together."""
        return []

    def free(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Return the abstract values that it takes and that do not follow from others."""
        return avals

    def taken(self, avals: tuple[Aval, ...], size: Size) -> list[Aval]:
        """Return the abstract values that it takes with other lengths."""
        return [resized(aval, size) for aval in avals]

    def learn(self, traced: Any) -> None:
        """Take over the facts that tracing `traced` showed, the same call with other lengths."""


def resized(aval: Aval, size: Size) -> Aval:
    """Return an abstract value with other lengths."""
    return aval._replace(shape=tuple(map(size, aval.shape)))


class Mark(NamedTuple):
    """A length in a pattern, by its number."""

    index: int  # type: ignore[assignment]  # hides `tuple.index`, which no one calls


class Product(NamedTuple):
    """A length in a pattern that is a product of others.

    Attributes:
      factors: what stands for these.
    """

    factors: tuple[Any, ...]


def general(call: Any, avals: tuple[Aval, ...]) -> tuple[General, Sizes] | None:
    """Return the `General` of a call's pattern of lengths, and these; None if all are small."""
    root = getattr(call, "root", None)
    if root is None:
        return None
    given, free = call.shapes(), call.free(avals)
    products = _products([*[aval.shape for aval in free], *given]) if given else {}
    lengths: dict[int, int] = {}

    def marked(n: int) -> Any:
        factors = products.get(n)
        if factors is not None:
            return Product(tuple(map(marked, factors)))
        return Mark(lengths.setdefault(n, len(lengths))) if LEAST <= n < _MOST else n

    key = (tuple([resized(aval, marked) for aval in free]), call.pattern(marked))
    if not 0 < len(lengths) <= MOST_SYMBOLS:
        return None
    sizes = tuple(lengths)
    found = root.general.get(key)
    if found is None:
        if len(root.general) >= _PATTERNS:
            root.general.clear()
        found = root.general[key] = General()
    return found, Sizes(sizes, products)


def _products(shapes: Sequence[tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    """Map each length that is a product of neighbouring dims of one of the shapes to these dims."""
    wanted = {n for shape in shapes for n in shape if LEAST * 2 <= n < _MOST}
    found: dict[int, tuple[int, ...]] = {}
    for shape in shapes:
        for start in range(len(shape) - 1):
            product = 1
            for end, n in enumerate(shape[start:], start + 1):
                product *= n
                if n < 2 or product >= _MOST:
                    break
                factors = shape[start:end]
                if len(factors) > 1 and product in wanted and max(factors) >= LEAST:
                    found.setdefault(product, factors)
    return found


def abstract(call: Any, avals: tuple[Aval, ...], expected: Callable[[], Any]) -> Any:
    """Return abstract values of a call's outputs.

    Args:
      expected: finds them without symbols.
    """
    found = general(call, avals)
    if found is None:
        return expected()
    it, sizes = found
    trace = it.traced(call, avals, sizes)
    if trace is None:
        return expected()
    fill = trace.lengths(sizes.free)
    outs = tuple([(fill(o.shape), np.dtype(o.dtype)) for o in trace.jaxpr.out_avals])
    if trace.shaped:
        call.learn(trace.call)
        return outs
    known = expected()
    if outs == tuple([known_out[:2] for known_out in known]):
        trace.shaped = True
    else:
        it.refuse()
    return known
