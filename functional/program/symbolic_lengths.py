"""Traces of calls that hold for any lengths.

An episode, a sentence, the rows that a mask leaves: the same calls are met with lengths that are
new each time, and to trace one takes milliseconds. So a call that came with other lengths before is
traced once with symbolic ones (`jax.export`'s shape polymorphism), and the lengths of each time are
filled in, which takes microseconds.

JAX takes a symbolic length to differ from whatever it does not know it to equal. Of the lengths of
one call that is true, for those that are equal share a symbol, and one that a reshape makes of
others is their product. And code that asks for one length in particular asks for a small one (2x2
determinants, vectors of 3), so only those from `LEAST` on are symbols. Which of two is greater JAX
does not know either: what asks for that, a slice that must fit, is traced for the order that the
lengths have. What is traced so is used once it gave the same as a trace with the lengths
themselves.
"""

from __future__ import annotations

import functools
import gc
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax.extend.core import ClosedJaxpr

if TYPE_CHECKING:
    from .program import Aval

LEAST = 4
_MOST = 1 << 31  # numbers from here on are no lengths, or too long: what takes them says so
_SYMBOLS = 8  # at most so many lengths has a call
_FEW = 2  # a loop's own, and those of its last batch
_TRACES = 8  # at most so many has a call for one pattern, of other lengths that are no symbols
_PATTERNS = 1024  # of calls that have one root


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
        """Tell it from others of the same root, whatever lengths are in it."""
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
        """Take over what became known of `traced`, the same with other lengths."""


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
        self._known: dict[Any, int] = {}  # the same few, at each step of a program

    def __call__(self, x: Any) -> Any:
        """Fill the lengths into `x`, a shape or any other parameter of a primitive."""
        kind = type(x)
        if kind is int:
            return x
        if kind is tuple:
            return tuple([self(y) for y in x])
        if not export.is_symbolic_dim(x):
            return x
        n = self._known.get(x)
        if n is None:
            # JAX has no public name for it: `traced` tries it, and does without where it is not
            # there.
            n = self._known[x] = x._evaluate(self._env)
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

    What was the same each time, the width of a layer, is no symbol: of symbols alone JAX could not
    tell that heads go into it. If it is another later, it becomes one if that can be traced.
    """

    __slots__ = ("_met", "_traces", "_refused", "_tried", "_failed")

    def __init__(self) -> None:
        self._met: set[tuple[int, ...]] = set()
        self._traces: list[Traced] = []
        self._tried: list[tuple[int, ...]] = []  # places of symbols, the last first
        self._refused = False  # nothing more is traced
        self._failed = 0

    def refuse(self) -> None:
        """Trace it anew for each length from now on."""
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

    made: Traced | None = None
    try:
        with jax.enable_x64(True):
            other = call.sized(named)
            found = jax.make_jaxpr(other.evaluate)(
                *[aval.struct() for aval in call.taken(avals, named)]
            )
        traced = Traced(other, found, sizes, places, order)
        traced.lengths(sizes)(tuple([out.shape for out in found.out_avals]))
        made = traced
    except Exception:  # whatever JAX cannot tell of symbols, or the body's own error
        pass
    let_go()
    return made


def let_go() -> None:
    """Have the frames of JAX's errors collected, of those that it has met itself as well.

    They and the errors hold each other, and the frames that called them, and so the user's tensors:
    a program would return what nobody holds any more.
    """
    gc.collect(1)


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
    if not 0 < len(lengths) <= _SYMBOLS:
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


@functools.cache
def _symbols() -> tuple[Any, ...]:
    return _symbols_of(_SYMBOLS)


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
