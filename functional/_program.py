"""What a recorded program is: calls of ops on numbered values, as plain data.

A `Program` is a list of entries in recording order. An entry is an `Input` or a `Node`; both
number the values that they add. Nothing here holds an array or knows how a program is run:
evaluate, lower, print and check are separate readers (`_lower.py`, `_cache.py`).

A `Call` is an op with everything but its arrays filled in, so it maps arrays to a tuple of
arrays. `VjpCall` is the call that a gradient node makes: it takes the inputs of the call that
it differentiates and the cotangents. Being ordinary calls, gradient nodes can themselves be
differentiated; that the pair of a node and its gradient shares one `jax.vjp` is a matter of
lowering only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import float0

from ._dtypes import category, is_differentiable
from ._op import Fault, Op


class Aval(NamedTuple):
    """Abstract value: what is known of an array before it is computed."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False  # a Python number that became a runtime input

    def struct(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, self.dtype, weak_type=self.weak)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class Slot(NamedTuple):
    """Stands in a call's template for the call's `index`-th array."""

    index: int  # type: ignore[assignment]  # hides `tuple.index`, which no one calls


def freeze(x: Any) -> Any:
    """A hashable form of a static argument that tells 1, 1.0 and True (and 0.0, -0.0) apart."""
    kind = type(x)
    if kind is float:
        return (float, x.hex())
    if kind in (int, bool, complex):
        return (kind, repr(x))
    if kind in (tuple, list):
        return (kind, tuple(freeze(y) for y in x))
    if kind is dict:
        return (dict, tuple((k, freeze(v)) for k, v in x.items()))
    if kind is slice:
        return (slice, freeze((x.start, x.stop, x.step)))
    if isinstance(x, Slot):
        return x
    return x


def fill(template: Any, arrays: Sequence[Any]) -> Any:
    """`template` with each `Slot` replaced by its array."""
    kind = type(template)
    if kind is Slot:
        return arrays[template.index]
    if kind is tuple or kind is list:
        return kind(fill(x, arrays) for x in template)
    if kind is dict:
        return {k: fill(v, arrays) for k, v in template.items()}
    return template


class Call:
    """An op with its static arguments: arrays in, a tuple of arrays out.

    Made through `call_of`, which returns the same object for equal arguments; compared by
    identity ever after.
    """

    __slots__ = ("op", "args", "kwargs", "_abstract", "many", "wrap", "__weakref__")

    def __init__(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        self._abstract: dict[Any, tuple[Aval, ...]] = {}
        self.many = False  # the body returned a tuple or list
        self.wrap: Any = None  # the NamedTuple class to rebuild, if any

    def __repr__(self) -> str:
        static = [repr(a) for a in self.args if not isinstance(a, Slot)]
        static += [f"{k}={v!r}" for k, v in self.kwargs.items() if not isinstance(v, Slot)]
        return f"{self.op.qualified}({', '.join(static)})"

    @property
    def name(self) -> str:
        return self.op.qualified

    @property
    def residuals(self) -> bool:
        return self.op.residuals

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        if self.op.random:  # keys travel between nodes as plain words
            key = jax.random.wrap_key_data(arrays[0], impl="threefry2x32")
            arrays = (key, *arrays[1:])
        out = self.op.fn(*fill(self.args, arrays), **fill(self.kwargs, arrays))
        if isinstance(out, (tuple, list)):
            self.many = True
            self.wrap = type(out) if hasattr(out, "_fields") else None
            return tuple(out)
        return (out,)

    def faults(self, *arrays: Any) -> list[Fault]:
        if self.op.check is None:
            return []
        return list(self.op.check(*fill(self.args, arrays), **fill(self.kwargs, arrays)) or ())

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Shapes and dtypes of the outputs; the body's own errors pass through."""
        known = self._abstract.get(avals)
        if known is None:
            known = self._abstract[avals] = abstract(self.evaluate, avals)
        return known


def abstract(fn: Callable[..., tuple[Any, ...]], avals: Sequence[Aval]) -> tuple[Aval, ...]:
    with jax.enable_x64(True):
        outs = jax.eval_shape(fn, *[a.struct() for a in avals])
    return tuple(Aval(tuple(o.shape), np.dtype(o.dtype)) for o in outs)


_CALLS: weakref.WeakValueDictionary[Any, Call] = weakref.WeakValueDictionary()


def call_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The one `Call` of `op` with this template."""
    key = (op, freeze(args), freeze(kwargs))
    call = _CALLS.get(key)
    if call is None:
        call = _CALLS[key] = Call(op, args, kwargs)
    return call


def conj(x: Any) -> Any:
    return jnp.conj(x) if category(x.dtype) == 3 else x


def differentiate(
    evaluate: Callable[..., tuple[Any, ...]], arrays: Sequence[Any], wanted: Sequence[int]
) -> tuple[tuple[Any, ...], Callable[[Sequence[Any]], tuple[Any, ...]]]:
    """Outputs of `evaluate` at `arrays`, and its pullback with respect to the `wanted` inputs.

    The pullback takes one cotangent an output (None for zero) and follows PyTorch's convention
    for complex numbers, which is the conjugate of JAX's.
    """
    box: dict[str, Any] = {}

    def inner(*moving: Any) -> Any:
        full = list(arrays)
        for i, x in zip(wanted, moving, strict=True):
            full[i] = x
        outs = evaluate(*full)
        box["floats"] = [k for k, o in enumerate(outs) if is_differentiable(o.dtype)]
        box["avals"] = [(o.shape, o.dtype) for o in outs]
        floats = set(box["floats"])
        rest = tuple(o for k, o in enumerate(outs) if k not in floats)
        return tuple(outs[k] for k in box["floats"]), rest

    floats, pull, rest = jax.vjp(inner, *[arrays[i] for i in wanted], has_aux=True)
    outs: list[Any] = []
    it_float, it_rest = iter(floats), iter(rest)
    for k in range(len(box["avals"])):
        outs.append(next(it_float) if k in box["floats"] else next(it_rest))
    meta = PullMeta(tuple(box["floats"]), tuple(box["avals"]))
    return tuple(outs), Pullback(pull, meta)


class PullMeta(NamedTuple):
    floats: tuple[int, ...]  # which outputs are differentiable
    avals: tuple[tuple[tuple[int, ...], Any], ...]  # shape and dtype of every output


class Pullback:
    """A `jax.vjp` closure that takes PyTorch's cotangents: None for zero, complex conjugated."""

    __slots__ = ("pull", "meta")

    def __init__(self, pull: Any, meta: PullMeta) -> None:
        self.pull, self.meta = pull, meta

    def __call__(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        filled = []
        for k in self.meta.floats:
            shape, dtype = self.meta.avals[k]
            ct = cotangents[k]
            filled.append(jnp.zeros(shape, dtype) if ct is None else conj(ct))
        grads = self.pull(tuple(filled))
        return tuple(g if g.dtype == float0 else conj(g) for g in grads)


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

    __slots__ = ("call", "n", "wanted", "given", "missing", "__weakref__")

    residuals = False
    many = True
    wrap = None

    def __init__(self, call: Any, n: int, wanted: Any, given: Any, missing: Any) -> None:
        self.call, self.n, self.wanted, self.given = call, n, wanted, given
        self.missing: tuple[tuple[int, Aval], ...] = missing

    def __repr__(self) -> str:
        return f"vjp[{self.call!r}]"

    @property
    def name(self) -> str:
        return f"vjp[{self.call.name}]"

    def split(self, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Inputs of `call` (stand-ins included), and one cotangent or None an output."""
        absent = dict(self.missing)
        n_present = self.n - len(absent)
        present, given = iter(arrays[:n_present]), iter(arrays[n_present:])
        inputs = [
            jnp.zeros(absent[i].shape, absent[i].dtype) if i in absent else next(present)
            for i in range(self.n)
        ]
        last = max(self.given) + 1
        cts = [next(given) if k in self.given else None for k in range(last)]
        return inputs, cts

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        inputs, cts = self.split(arrays)
        outs, pull = differentiate(self.call.evaluate, inputs, self.wanted)
        return pull(cts + [None] * (len(outs) - len(cts)))

    def faults(self, *arrays: Any) -> list[Fault]:
        return []

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """A gradient has its input's shape and dtype: nothing needs to be traced."""
        absent = dict(self.missing)
        present = iter(avals)
        inputs = [absent[i] if i in absent else next(present) for i in range(self.n)]
        return tuple(Aval(inputs[i].shape, inputs[i].dtype) for i in self.wanted)


_VJPS: weakref.WeakValueDictionary[Any, VjpCall] = weakref.WeakValueDictionary()


def vjp_of(
    call: Any,
    n: int,
    wanted: tuple[int, ...],
    given: tuple[int, ...],
    missing: tuple[tuple[int, Aval], ...] = (),
) -> VjpCall:
    """The one `VjpCall` with these columns."""
    key = (call, n, wanted, given, missing)
    made = _VJPS.get(key)
    if made is None:
        made = _VJPS[key] = VjpCall(call, n, wanted, given, missing)
    return made


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
        pull = jax.tree.unflatten(self.treedef, arrays[: self.n])
        given = iter(arrays[self.n :])
        cts = [next(given) if k in self.given else None for k in range(len(self.meta.avals))]
        grads = Pullback(pull, self.meta)(cts)
        return tuple(grads[k] for k in self.take)

    def faults(self, *arrays: Any) -> list[Fault]:
        return []

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        return tuple(self.avals[k] for k in self.take)


class Input(NamedTuple):
    """A value that comes from outside the program."""

    aval: Aval

    @property
    def avals(self) -> tuple[Aval, ...]:
        return (self.aval,)

    @property
    def key(self) -> Any:
        return ("input", self.aval)


class Node:
    """One call on earlier values.

    Attributes:
      call: what is called.
      inputs: numbers of the values it takes.
      avals: abstract values of its outputs.
      primal: for a gradient node, the entry that it differentiates, if in the same program.
      where: `(file, line)` of the user's code.
    """

    __slots__ = ("call", "inputs", "avals", "primal", "where")

    def __init__(
        self,
        call: Any,
        inputs: tuple[int, ...],
        avals: tuple[Aval, ...],
        primal: Any = None,
        where: tuple[str, int] | None = None,
    ) -> None:
        self.call, self.inputs, self.avals = call, inputs, avals
        self.primal, self.where = primal, where

    @property
    def key(self) -> Any:
        return (self.call, self.inputs)

    def __repr__(self) -> str:
        return f"{self.call!r} {self.inputs}"


class Program(NamedTuple):
    """Entries in recording order, and the numbers of the values that are returned.

    Attributes:
      entries: `Input` and `Node`; the values that they add are numbered in this order.
      outputs: numbers of the returned values.
      residuals: nodes (by entry index) whose `jax.vjp` residuals are returned as well, with
        the input positions that are differentiated.
    """

    entries: tuple[Any, ...]
    outputs: tuple[int, ...]
    residuals: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def key(self) -> Any:
        return (tuple(e.key for e in self.entries), self.outputs, self.residuals)

    def first_values(self) -> list[int]:
        """The number of the first value of each entry."""
        firsts, n = [], 0
        for entry in self.entries:
            firsts.append(n)
            n += len(entry.avals)
        return firsts

    def __str__(self) -> str:
        lines = []
        for entry, first in zip(self.entries, self.first_values(), strict=True):
            outs = ", ".join(
                f"%{first + k}:{a.dtype.name}{list(a.shape)}" for k, a in enumerate(entry.avals)
            )
            if isinstance(entry, Input):
                lines.append(f"{outs} = input")
            else:
                args = ", ".join(f"%{i}" for i in entry.inputs)
                lines.append(f"{outs} = {entry.call!r} {args}")
        lines.append("return " + ", ".join(f"%{i}" for i in self.outputs))
        return "\n".join(lines)
