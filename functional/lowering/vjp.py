"""Gradients as calls, which a gradient node stands for.

`VjpCall` takes the inputs of the call that it differentiates and the cotangents. Being an
ordinary call, it can itself be differentiated; that a node and its gradient share one `jax.vjp`
is a matter of lowering only. `ResidualCall` is the same from what an earlier program kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..program.op import Fault
from ..program.program import Aval, Node, abstract
from ..program.symbolic_lengths import Size, resized
from .differentiate import Pullback, PullMeta, differentiate
from .keys import with_keys


def _zeros(aval: Aval) -> Any:
    """Make zeros; for a Python number a weakly typed one, or it would widen the result."""
    return jnp.asarray(aval.dtype.type(0).item()) if aval.weak else jnp.zeros(*aval[:2])


class VjpCall:
    """The gradient of a call: `(*inputs, *given cotangents) -> gradients of the wanted inputs`.

    Attributes:
      call: what is differentiated.
      n: how many inputs it has.
      wanted: positions of the inputs whose gradients are returned.
      given: positions of the outputs whose cotangents are passed; the others' are zero.
      missing: inputs that backward does not need, by position: zeros of this abstract value
        stand in for them, and they are not passed.
    """

    __slots__ = ("call", "n", "wanted", "given", "missing", "_abstract", "__weakref__")

    residuals = False
    many = True
    wrap = None

    def __init__(self, call: Any, n: int, wanted: Any, given: Any, missing: Any) -> None:
        self.call, self.n, self.wanted, self.given = call, n, wanted, given
        self.missing: tuple[tuple[int, Aval], ...] = missing
        self._abstract: dict[Any, tuple[Aval, ...]] = {}

    def __repr__(self) -> str:
        return f"vjp[{self.call!r}]"

    @property
    def name(self) -> str:
        return f"vjp[{self.call.name}]"

    @property
    def root(self) -> Any:
        """The call that is differentiated, once or several times."""
        return self.call.root

    def pattern(self, size: Size) -> Any:
        """Return a key that tells it from other gradients of the root, whatever the lengths."""
        inner = self.call.pattern(size)
        return (inner, self.n, self.wanted, self.given, self._resized(size))

    def sized(self, size: Size) -> VjpCall:
        """Return the same gradient with other lengths in it."""
        inner = self.call.sized(size)
        return VjpCall(inner, self.n, self.wanted, self.given, self._resized(size))

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the lengths in the arguments of the differentiated call, and of stand-ins."""
        given = self.call.shapes()
        return given and [*given, *[aval.shape for _, aval in self.missing]]

    def _resized(self, size: Size) -> tuple[tuple[int, Aval], ...]:
        return tuple([(i, resized(aval, size)) for i, aval in self.missing])

    def free(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Return all abstract values but the cotangents', whose shapes are those of the outputs."""
        return avals[: self.n - len(self.missing)]

    def learn(self, traced: Any) -> None:
        """Learn nothing: tracing tells nothing of a gradient."""

    def taken(self, avals: tuple[Aval, ...], size: Size) -> list[Aval]:
        """Return the abstract values that it takes with other lengths."""
        inputs = self.call.taken(self._inputs(avals), size)
        outs = abstract(self.call.sized(size).evaluate, inputs)
        absent = dict(self.missing)
        present = [aval for i, aval in enumerate(inputs) if i not in absent]
        return present + [outs[k] for k in self.given]

    def _inputs(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Return abstract values of what `call` takes, stand-ins included."""
        absent, present = dict(self.missing), iter(avals)
        return tuple([absent[i] if i in absent else next(present) for i in range(self.n)])

    def split(self, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return inputs of `call` (stand-ins included), and one cotangent or None an output."""
        absent = dict(self.missing)
        n_present = self.n - len(absent)
        present, given = iter(arrays[:n_present]), iter(arrays[n_present:])
        inputs = [_zeros(absent[i]) if i in absent else next(present) for i in range(self.n)]
        last = max(self.given, default=-1) + 1  # none: outputs without a gradient
        cts = [next(given) if k in self.given else None for k in range(last)]
        return inputs, cts

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        """Differentiate the call at its inputs, and pull the cotangents back."""
        inputs, cts = self.split(arrays)
        outs, pull = differentiate(self.call.evaluate, inputs, self.wanted)
        return pull(cts + [None] * (len(outs) - len(cts)))

    def faults(self, *arrays: Any) -> list[Fault]:
        """Return no faults: the differentiated call has been checked."""
        return []

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Return what is known of the inputs, as gradients are like them: nothing is traced."""
        known = self._abstract.get(avals)
        if known is None:
            _refuse(self.call)
            inputs = self._inputs(avals)
            known = tuple([inputs[i]._replace(weak=False) for i in self.wanted])
            self._abstract[avals] = known
        return known


_VJPS: weakref.WeakValueDictionary[Any, VjpCall] = weakref.WeakValueDictionary()


def vjp_of(
    call: Any,
    n: int,
    wanted: tuple[int, ...],
    given: tuple[int, ...],
    missing: tuple[tuple[int, Aval], ...] = (),
) -> VjpCall:
    """Return the one `VjpCall` with these columns."""
    key = (call, n, wanted, given, missing)
    vjp = _VJPS.get(key)
    if vjp is None:
        vjp = _VJPS[key] = VjpCall(call, n, wanted, given, missing)
    return vjp


def _refuse(call: Any) -> None:
    """Raise what PyTorch has instead of a gradient of this call."""
    refusal = getattr(getattr(call, "op", None), "no_gradient", None)
    if refusal is not None:
        raise refusal[0](refusal[1])


class ResidualCall:
    """A gradient taken from the residuals that an earlier program returned.

    `(*residuals, *given cotangents) -> gradients of the wanted inputs`; `treedef` and `meta`
    rebuild the `jax.vjp` closure.
    """

    __slots__ = ("source", "treedef", "meta", "n", "given", "take", "avals", "__weakref__")

    residuals = False
    many = True
    wrap = None

    def __init__(
        self, source: Any, treedef: Any, meta: PullMeta, n: int, given: Any, take: Any, avals: Any
    ) -> None:
        self.source, self.treedef, self.meta, self.n = source, treedef, meta, n
        self.given, self.take, self.avals = given, take, avals

    def __repr__(self) -> str:
        return f"vjp[{self.source!r}] from residuals"

    @property
    def name(self) -> str:
        return f"vjp[{self.source.name}]"

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        """Rebuild the pullback from its residuals, and pull the cotangents back."""
        pull = with_keys(jax.tree.unflatten(self.treedef, arrays[: self.n]))
        given = iter(arrays[self.n :])
        cts = [next(given) if k in self.given else None for k in range(len(self.meta.avals))]
        grads = Pullback(pull, self.meta)(cts)
        return tuple(grads[k] for k in self.take)

    def faults(self, *arrays: Any) -> list[Fault]:
        """Return no faults: the differentiated call has been checked."""
        return []

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        _refuse(self.source)
        return tuple(self.avals[k] for k in self.take)


def is_gradient(entry: Any) -> bool:
    """Return True if an entry of a program is the gradient of a call."""
    return isinstance(entry, Node) and isinstance(entry.call, (VjpCall, ResidualCall))


def has_gradients(entries: Iterable[Any]) -> bool:
    """Return True if any of a program's entries is the gradient of a call."""
    return any(map(is_gradient, entries))
