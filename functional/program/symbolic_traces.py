"""Traces of one call in which symbols stand for its lengths.

Three things must hold for a trace with symbols to compute what a trace with numbers computes:

- Two symbols are never equal. JAX takes `a == b` for False unless it can prove it. So equal lengths
  of a call share one symbol: `x[12, 7] + y[12, 1]` has the symbols `a` for 12 and `b` for 7. A
  length that a reshape makes of others is their product: 84 in `x.reshape(84)` is `a * b`.
- No symbol is a length that code asks for by name, such as 1, 2 or 3 (2x2 determinants, vectors of
  3). So lengths below `LEAST` stay numbers.
- The order of two symbols is known where code asks for it, as a slice that must fit does. If a
  trace without an order fails, it is tried again for the order that the lengths have this time.

A trace with symbols is used only after it gave the same as one with the lengths themselves.
"""

from __future__ import annotations

import functools
import gc
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax import export
from jax.extend.core import ClosedJaxpr

if TYPE_CHECKING:
    from .program import Aval

LEAST = 4  # the smallest length that a symbol stands for
MOST_SYMBOLS = 8  # lengths that a call may have
_FEW = 2  # sets of lengths that a loop has: its own, and those of its last batch
_TRACES = 8  # the most of a call for one pattern, of other lengths that are no symbols


class Sizes(NamedTuple):
    """The lengths of one call that may be symbols.

    Attributes:
      free: those that do not follow from others.
      products: of each that does the factors.
    """

    free: tuple[int, ...]
    products: dict[int, tuple[int, ...]]


class Lengths:
    """The lengths that one call has this time, by name; called, it fills them in."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._env: Any = {f"d{i}": n for i, n in enumerate(sizes)}
        self._values: dict[Any, int] = {}  # the same few, at each step of a program

    def __call__(self, x: Any) -> Any:
        """Fill the lengths into `x`, a shape or any other parameter of a primitive."""
        kind = type(x)
        if kind is int:
            return x
        if kind is tuple:
            return tuple([self(y) for y in x])
        if not export.is_symbolic_dim(x):
            return x
        n = self._values.get(x)
        if n is None:
            # JAX has no public name for it. Without it `_trace` fails, and calls are traced for
            # each length.
            n = self._values[x] = x._evaluate(self._env)
        return n


class Traced:
    """A call's trace in which some of its lengths are symbols.

    Attributes:
      call: with these symbols.
      places: which of the call's free lengths are symbols.
      order: these lengths from the least to the greatest, None if it is for any order.
      shaped: its abstract values were the same as without symbols.
      agreed: so were its numbers.
      reads: which inputs a gradient reads, known once a trace without symbols reads the same.
    """

    __slots__ = ("call", "jaxpr", "places", "order", "shaped", "agreed", "reads", "_fixed")

    def __init__(
        self, call: Any, jaxpr: ClosedJaxpr, sizes: tuple[int, ...], places: tuple[int, ...],
        order: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self.call, self.jaxpr, self.places, self.order = call, jaxpr, places, order
        self._fixed = [(i, n) for i, n in enumerate(sizes) if i not in places]
        self.shaped = self.agreed = False
        self.reads: frozenset[int] | None = None

    def is_for(self, sizes: tuple[int, ...]) -> bool:
        fixed = all([sizes[i] == n for i, n in self._fixed])
        return fixed and (self.order is None or self.order == _order(sizes))

    def lengths(self, sizes: tuple[int, ...]) -> Lengths:
        """Return what fills in the lengths of one call."""
        return Lengths([sizes[i] for i in self.places])


class General:
    """One call for one pattern of lengths: which are equal, and which are small.

    A length that was the same each time, such as the width of a layer, is no symbol: of symbols
    alone JAX could not tell that the heads divide it. Should it change later, it becomes a symbol
    if that can be traced.
    """

    __slots__ = ("_met", "_traces", "_refused", "_tried", "_failed")

    def __init__(self) -> None:
        self._met: set[tuple[int, ...]] = set()
        self._traces: list[Traced] = []
        self._tried: list[tuple[int, ...]] = []  # places of symbols, the last first
        self._refused = False  # nothing more is traced
        self._failed = 0

    def refuse(self) -> None:
        """Give up symbols: from now on the call is traced for each set of lengths."""
        self._traces, self._refused = [], True

    def traced(self, call: Any, avals: tuple[Aval, ...], given: Sizes) -> Traced | None:
        """Return the trace with symbols; None while the call had few lengths, or without one."""
        sizes = given.free
        for found in self._traces:
            if found.is_for(sizes):
                return found
        if self._refused or len(self._traces) >= _TRACES:
            return None
        if len(self._met) < _FEW or sizes in self._met:
            self._met.add(sizes)
            return None
        self._met.add(sizes)
        varying = tuple([i for i, ns in enumerate(zip(*self._met, strict=True)) if len({*ns}) > 1])
        if varying not in self._tried:
            self._tried.insert(0, varying)
        for places in self._tried:
            trace = _trace(call, avals, given, places) or _trace(call, avals, given, places, True)
            if trace is not None:
                self._traces.append(trace)
                if trace.order is None:
                    self._tried = self._tried[self._tried.index(places) :]
                return trace
        self._failed += 1
        self._refused = not self._traces or self._failed > _FEW
        return None


def _order(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(sizes)), key=sizes.__getitem__))


def _trace(
    call: Any, avals: tuple[Aval, ...], given: Sizes, places: tuple[int, ...],
    ordered: bool = False,
) -> Traced | None:  # fmt: skip
    """Trace the call with symbols for the lengths of these places, if that is possible.

    Args:
      ordered: which length is greater may be asked for.
    """
    sizes = given.free
    order = _order(sizes) if ordered else None
    if order is not None and len(order) < 2:
        return None
    symbols = _symbols() if order is None else _in_order(sizes, order, places)
    names = {sizes[i]: name for i, name in zip(places, symbols, strict=False)}
    for n in sorted(given.products):  # factors of a product may be products
        names[n] = math.prod([names.get(factor, factor) for factor in given.products[n]])

    def named(n: int) -> Any:
        return names.get(n, n)

    result: Traced | None = None
    try:
        with jax.enable_x64(True):
            other = call.sized(named)
            found = jax.make_jaxpr(other.evaluate)(
                *[aval.struct() for aval in call.taken(avals, named)]
            )
        traced = Traced(other, found, sizes, places, order)
        traced.lengths(sizes)(tuple([out.shape for out in found.out_avals]))
        result = traced
    except Exception:  # whatever JAX cannot tell of symbols, or the body's own error
        pass
    collect_errors()
    return result


def collect_errors() -> None:
    """Collect the frames of JAX's errors, of those that JAX caught as well.

    Frames and errors hold each other, and the frames that called them, and so the user's tensors:
    a program would then return what nobody holds any more.
    """
    gc.collect(1)


@functools.cache
def _symbols() -> tuple[Any, ...]:
    return _symbols_of(MOST_SYMBOLS)


def _symbols_of(count: int, *known: str) -> tuple[Any, ...]:
    """Make symbols that are no small lengths, with more constraints."""
    names = [f"d{i}" for i in range(count)]
    scope = export.SymbolicScope([*[f"{name} >= {LEAST}" for name in names], *known])
    return tuple(export.symbolic_shape(", ".join(names), scope=scope))


def _in_order(
    sizes: tuple[int, ...], order: tuple[int, ...], places: tuple[int, ...]
) -> tuple[Any, ...]:
    """Make symbols for the lengths of these places, of which JAX knows which is greater."""
    names = [f"d{places.index(i)}" if i in places else str(sizes[i]) for i in order]
    known = [f"{b} >= {a} + 1" for a, b in itertools.combinations(names, 2) if "d" in a + b]
    return _symbols_of(len(places), *known)
