"""What a call traces to for any lengths.

An episode, a sentence, the rows that a mask leaves: the same calls are met with lengths that are
new each time, and to trace one takes milliseconds. So a call that came with other lengths before is
traced once with symbolic ones (`jax.export`'s shape polymorphism), and the lengths of each time are
filled in, which takes microseconds.

JAX takes a symbolic length to differ from whatever it does not know it to equal. Of the lengths of
one call that is true, for those that are equal share a symbol. And code that asks for one length in
particular asks for a small one (2x2 determinants, vectors of 3), so only those from `LEAST` on are
symbols. What is traced so is used once it gave the same as a trace with the lengths themselves.

Where a body asks which of two lengths is less (the part of a table that a sentence takes), no trace
is for all: it is one for those that are in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax.extend.core import ClosedJaxpr

if TYPE_CHECKING:
    from ._program import Aval

LEAST = 8
_MOST = 1 << 31  # numbers from here on are no lengths, or too long: what takes them says so
_SYMBOLS = 8  # at most so many lengths has a call
_FEW = 2  # a loop's own, and those of its last batch
_TRACES = 8  # at most so many has a call for one pattern, of other lengths that are no symbols
_PATTERNS = 1024  # of calls that have one root


Size = Callable[[int], Any]  # what stands for a length; small ones stand for themselves


class AnyLengths:
    """What can be traced for any lengths: a call, or anything else with an `evaluate`.

    Attributes:
      general: what it and its gradients trace to, by pattern of lengths.
    """

    __slots__ = ("general",)

    def __init__(self) -> None:
        self.general: dict[Any, General] = {}

    @property
    def root(self) -> AnyLengths:
        """What holds `general`: the call itself, the one that is differentiated, or what calls
        that differ in their lengths have in common."""
        return self

    def sized(self, size: Size) -> AnyLengths:
        """The same with other lengths in it: there are none."""
        return self

    def pattern(self, size: Size) -> Any:
        """What tells it from others of the same root, whatever lengths are in it."""
        return None

    def free(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Of the abstract values that it takes those that do not follow from others."""
        return avals

    def taken(self, avals: tuple[Aval, ...], size: Size) -> list[Aval]:
        """What it takes where the lengths are replaced by others."""
        return [resized(aval, size) for aval in avals]

    def learn(self, traced: Any) -> None:
        """Take over what became known of `traced`, the same with other lengths."""


def resized(aval: Aval, size: Size) -> Aval:
    """An abstract value with other lengths."""
    return aval._replace(shape=tuple(map(size, aval.shape)))


class Mark(NamedTuple):
    """Stands for a length in a pattern."""

    index: int  # type: ignore[assignment]  # hides `tuple.index`, which no one calls


class Lengths:
    """The lengths that one call has this time, by name; called, it fills them in."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._env: Any = {f"d{i}": n for i, n in enumerate(sizes)}

    def __call__(self, x: Any) -> Any:
        """`x`, a shape or any other parameter of a primitive, with these lengths."""
        if type(x) is tuple:
            return tuple([self(y) for y in x])
        # JAX has no public name for it: `traced` tries it, and does without where it is not there.
        return x._evaluate(self._env) if export.is_symbolic_dim(x) else x


class Traced:
    """What a call traces to where some of its lengths are symbols.

    Attributes:
      call: with these symbols.
      places: which of the call's lengths are symbols.
      shaped: its abstract values were the same as without symbols.
      agreed: so were its numbers.
      reads: which inputs a gradient reads, once it is known.
    """

    __slots__ = ("call", "jaxpr", "places", "shaped", "agreed", "reads", "_fixed", "_order")

    def __init__(
        self, call: Any, jaxpr: ClosedJaxpr, sizes: tuple[int, ...], places: tuple[int, ...],
        ordered: bool,
    ) -> None:  # fmt: skip
        self.call, self.jaxpr, self.places = call, jaxpr, places
        self._order = _order(sizes) if ordered else None
        self._fixed = [(i, n) for i, n in enumerate(sizes) if i not in places]
        self.shaped = self.agreed = False
        self.reads: frozenset[int] | None = None

    def is_for(self, sizes: tuple[int, ...]) -> bool:
        if self._order is not None and self._order != _order(sizes):
            return False
        return all([sizes[i] == n for i, n in self._fixed])

    def lengths(self, sizes: tuple[int, ...]) -> Lengths:
        """Fills in the lengths of one call."""
        return Lengths([sizes[i] for i in self.places])


class General:
    """One call for one pattern of lengths: which are equal, and which are small.

    What was the same each time, the width of a layer, is no symbol: of symbols alone JAX could not
    tell that heads go into it. If it is another later, it becomes one if that can be traced.
    """

    __slots__ = ("_met", "_traces", "_refused", "_tried")

    def __init__(self) -> None:
        self._met: set[tuple[int, ...]] = set()
        self._traces: list[Traced] = []
        # Places of symbols and whether their order is known, the last first.
        self._tried: list[tuple[tuple[int, ...], bool]] = []
        self._refused = False

    def refuse(self) -> None:
        """Trace it anew for each length from now on."""
        self._traces, self._refused = [], True

    def traced(self, call: Any, avals: tuple[Aval, ...], sizes: tuple[int, ...]) -> Traced | None:
        """What the call traces to with symbols; None as long as it had few lengths, and where it
        has no such trace."""
        for found in self._traces:
            if found.is_for(sizes):
                return found
        if self._refused:
            return None
        if len(self._met) < _FEW or sizes in self._met:
            self._met.add(sizes)
            return None
        self._met.add(sizes)
        varying = tuple([i for i, ns in enumerate(zip(*self._met, strict=True)) if len({*ns}) > 1])
        if all(varying != places for places, _ in self._tried):
            self._tried[:0] = [(varying, False), (varying, True)] if len(sizes) > 1 else [
                (varying, False)
            ]
        for way in self._tried:
            trace = _trace(call, avals, sizes, *way)
            if trace is not None:
                self._traces.append(trace)
                self._tried = self._tried[self._tried.index(way) :]
                return trace
        self._refused = not self._traces or len(self._traces) >= _TRACES
        return None


def _trace(
    call: Any, avals: tuple[Aval, ...], sizes: tuple[int, ...], places: tuple[int, ...],
    ordered: bool,
) -> Traced | None:  # fmt: skip
    """What the call traces to with symbols for the lengths of these places, if that is possible.

    Args:
      ordered: it may ask which of the lengths is greater.
    """
    names = {sizes[i]: name for i, name in zip(places, _symbols(), strict=False)}
    if ordered:
        known = [
            f"{names.get(more, more)} >= {names.get(less, less)} + 1"
            for less, more in pairwise(sorted(sizes))
            if less in names or more in names
        ]
        names = dict(zip(names, _scoped(tuple(known)), strict=False))

    def named(n: int) -> Any:
        return names.get(n, n)

    try:
        with jax.enable_x64(True):
            other = call.sized(named)
            found = jax.make_jaxpr(other.evaluate)(
                *[aval.struct() for aval in call.taken(avals, named)]
            )
        made = Traced(other, found, sizes, places, ordered)
        made.lengths(sizes)(tuple([out.shape for out in found.out_avals]))
    except Exception:  # whatever JAX cannot tell of symbols, or the body's own error
        return None
    return made


def general(call: Any, avals: tuple[Aval, ...]) -> tuple[General, tuple[int, ...]] | None:
    """A call for the pattern that these lengths have, and the lengths; None if all are small."""
    root = getattr(call, "root", None)
    if root is None:
        return None
    lengths: dict[int, int] = {}

    def marked(n: int) -> Any:
        return Mark(lengths.setdefault(n, len(lengths))) if LEAST <= n < _MOST else n

    key = (tuple([resized(aval, marked) for aval in call.free(avals)]), call.pattern(marked))
    if not 0 < len(lengths) <= _SYMBOLS:
        return None
    sizes = tuple(lengths)
    found = root.general.get(key)
    if found is None:
        if len(root.general) >= _PATTERNS:
            root.general.clear()
        found = root.general[key] = General()
    return found, sizes


def abstract(call: Any, avals: tuple[Aval, ...], expected: Callable[[], Any]) -> Any:
    """Abstract values of a call's outputs.

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
    fill = trace.lengths(sizes)
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


def _order(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Which of different lengths is the least, the next, and so on."""
    return tuple(sorted(range(len(sizes)), key=sizes.__getitem__))


@functools.cache
def _symbols() -> tuple[Any, ...]:
    return _scoped(())


def _scoped(known: tuple[str, ...]) -> tuple[Any, ...]:
    """Symbols of which this is known besides."""
    names = [f"d{i}" for i in range(_SYMBOLS)]
    scope = export.SymbolicScope([*(f"{name} >= {LEAST}" for name in names), *known])
    return tuple(export.symbolic_shape(", ".join(names), scope=scope))
