"""What a call traces to for any lengths.

An episode, a sentence, the rows that a mask leaves: the same calls are met with lengths that are
new each time, and to trace one takes milliseconds. So a call that came with other lengths before is
traced once with symbolic ones (`jax.export`'s shape polymorphism), and the lengths of each time are
filled in, which takes microseconds.

JAX takes a symbolic length to differ from whatever it does not know it to equal. Of the lengths of
one call that is true, for those that are equal share a symbol. And code that asks for one length in
particular asks for a small one (2x2 determinants, vectors of 3), so only those from `LEAST` on are
symbols. What is traced so is used once it gave the same as a trace with the lengths themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import export
from jax.extend.core import ClosedJaxpr

if TYPE_CHECKING:
    from ._program import Aval

LEAST = 8
_SYMBOLS = 8  # at most so many lengths has a call
_FEW = 2  # a loop's own, and those of its last batch


class AnyLengths:
    """What can be traced for any lengths: a call, or anything else with an `evaluate`.

    Attributes:
      general: what it and its gradients trace to, by pattern of lengths.
      pattern: what tells it from others of the same root.
    """

    __slots__ = ("general",)

    pattern: Any = None

    def __init__(self) -> None:
        self.general: dict[Any, General] = {}

    @property
    def root(self) -> AnyLengths:
        """What holds `general`: the call itself, or the one that is differentiated."""
        return self

    def sized(self, of: Callable[[Aval], Aval]) -> AnyLengths:
        """The same with what `of` gives for the abstract values in it: there are none."""
        return self

    def free(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Of the abstract values that it takes those that do not follow from others."""
        return avals

    def taken(self, avals: tuple[Aval, ...], of: Callable[[Aval], Aval]) -> list[Aval]:
        """What it takes where lengths are replaced by what `of` gives."""
        return [of(aval) for aval in avals]


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


class General:
    """One call for one pattern of lengths: which are equal, and which are small.

    Attributes:
      shaped: its abstract values were the same as without symbols.
      agreed: so were its numbers.
    """

    __slots__ = ("_met", "_jaxpr", "_refused", "shaped", "agreed")

    def __init__(self) -> None:
        self._met: set[tuple[int, ...]] = set()
        self._jaxpr: ClosedJaxpr | None = None
        self.shaped = self.agreed = self._refused = False

    def refuse(self) -> None:
        """Trace it anew for each length from now on."""
        self._jaxpr, self._refused = None, True

    def traced(
        self, call: Any, avals: tuple[Aval, ...], sizes: tuple[int, ...]
    ) -> ClosedJaxpr | None:
        """What the call traces to with symbols; None as long as it had few lengths, and where it
        has no such trace."""
        if self._refused:
            return None
        if self._jaxpr is None:
            if len(self._met) < _FEW or sizes in self._met:
                self._met.add(sizes)
                return None
            names = dict(zip(sizes, _symbols(), strict=False))

            def named(aval: Aval) -> Aval:
                return aval._replace(shape=tuple([names.get(n, n) for n in aval.shape]))

            try:
                with jax.enable_x64(True):
                    trace = jax.make_jaxpr(call.sized(named).evaluate)
                    found = trace(*[aval.struct() for aval in call.taken(avals, named)])
                Lengths(sizes)(tuple([out.shape for out in found.out_avals]))
            except Exception:  # whatever JAX cannot tell of symbols, or the body's own error
                self.refuse()
            else:
                self._jaxpr = found
        return self._jaxpr


def general(call: Any, avals: tuple[Aval, ...]) -> tuple[General, tuple[int, ...]] | None:
    """A call for the pattern that these lengths have, and the lengths; None if all are small."""
    root = getattr(call, "root", None)
    if root is None:
        return None
    lengths: dict[int, int] = {}

    def marked(aval: Aval) -> Aval:
        shape = [n if n < LEAST else ~lengths.setdefault(n, len(lengths)) for n in aval.shape]
        return aval._replace(shape=tuple(shape))

    key = (tuple([marked(aval) for aval in call.free(avals)]), call.sized(marked).pattern)
    if not 0 < len(lengths) <= _SYMBOLS:
        return None
    sizes = tuple(lengths)
    found = root.general.get(key)
    if found is None:
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
    jaxpr = it.traced(call, avals, sizes)
    if jaxpr is None:
        return expected()
    fill = Lengths(sizes)
    outs = tuple([type(avals[0])(fill(o.shape), np.dtype(o.dtype)) for o in jaxpr.out_avals])
    if it.shaped:
        return outs
    known = expected()
    if outs == known:
        it.shaped = True
    else:
        it.refuse()
    return known


@functools.cache
def _symbols() -> tuple[Any, ...]:
    names = [f"d{i}" for i in range(_SYMBOLS)]
    scope = export.SymbolicScope([f"{name} >= {LEAST}" for name in names])
    return tuple(export.symbolic_shape(", ".join(names), scope=scope))
