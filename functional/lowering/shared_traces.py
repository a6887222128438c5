"""Functions of equal arrays, traced once for all: a model has one layer many times.

To run the Python of an op's body, of its `jax.vjp` and of a parameter's update takes milliseconds
each, to bind the equations that they traced to a tenth of that. The equations are the same, so
what XLA compiles is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun

from .differentiate import Pullback, PullMeta, differentiate


class SharedTraces:
    """The functions that one trace of a program has met so far."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def call(
        self, key: Hashable, fn: Callable[..., Sequence[Any]], args: Sequence[Any]
    ) -> Sequence[Any]:
        """Return `fn(*args)`; what was called twice is traced for the calls that follow.

        Args:
          key: tells `fn` from others: equal keys say the same function.
          fn: takes arrays and returns a sequence of arrays.
          args: the arrays.
        """
        return self._call(key, fn, args)[0]

    def differentiate(
        self, call: Any, args: Sequence[Any], wanted: tuple[int, ...]
    ) -> tuple[tuple[Any, ...], Closure]:
        """Return a call's outputs at `args`, and their pullback to the `wanted` inputs."""
        facts: list[Any] = []

        def forward(*arrays: Any) -> Any:
            outs, pullback = differentiate(call.evaluate, arrays, wanted)
            leaves, treedef = jax.tree.flatten(pullback.pull)
            facts[:] = len(outs), treedef, pullback.meta
            return (*outs, *leaves)

        key = (call, wanted)
        found, kept = self._call(key, forward, args, facts)
        n, treedef, meta = kept
        pullback = Pullback(jax.tree.unflatten(treedef, found[n:]), meta)
        return tuple(found[:n]), Closure(pullback, meta, self, treedef)

    def _call(
        self, key: Hashable, fn: Callable[..., Any], args: Sequence[Any], facts: Any = None
    ) -> tuple[Any, Any]:
        """Return `fn(*args)`, and the facts that it told when it ran."""
        place = (key, tuple(map(jax.typeof, args)))
        known = self._known.get(place)
        if known is None:
            self._known[place] = False  # once
            return fn(*args), facts
        if known is False:
            traced = jax.make_jaxpr(fn)(*args)
            known = self._known[place] = jaxpr_as_fun(traced), facts
        return known[0](*args), known[1]


class Closure:
    """A pullback whose equations are shared with those of equal calls."""

    def __init__(
        self, pullback: Pullback, meta: PullMeta, traces: SharedTraces, treedef: Any
    ) -> None:
        self._pullback, self.meta, self._traces, self._treedef = pullback, meta, traces, treedef
        self.pull = pullback.pull

    def __call__(self, cotangents: Sequence[Any]) -> Sequence[Any]:
        leaves = jax.tree.leaves(self.pull)
        given = [k for k, ct in enumerate(cotangents) if ct is not None]
        n, treedef, meta = len(leaves), self._treedef, self.meta

        def backward(*arrays: Any) -> Any:
            cts: list[Any] = [None] * len(meta.avals)
            for k, ct in zip(given, arrays[n:], strict=True):
                cts[k] = ct
            return Pullback(jax.tree.unflatten(treedef, arrays[:n]), meta)(cts)

        key = (treedef, meta, tuple(given))
        return self._traces.call(key, backward, [*leaves, *[cotangents[k] for k in given]])
