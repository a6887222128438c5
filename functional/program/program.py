"""Recorded programs: calls of ops on numbered values, as plain data.

A `Program` is a list of entries in recording order. An entry is an `Input` or a `Node`; both
number the values that they add. Nothing here holds an array or knows how a program is run:
evaluate, lower, print and check are separate readers (`lowering/lower.py`, `execution/plan.py`).

A `Call` is an op with everything but its arrays filled in, so it maps arrays to a tuple of
arrays. Gradient nodes make calls of their own kind, see `lowering/vjp.py`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .number_fits import check_numbers
from .numerics import evaluated_under, numerics, products_as
from .op import Fault, Op
from .symbolic_lengths import AnyLengths, Size
from .symbolic_lengths import abstract as of_any_lengths
from .templates import Slot as Slot
from .templates import fill as fill
from .templates import freeze as freeze


class Aval(NamedTuple):
    """Abstract value: what is known of an array before it is computed."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False  # a Python number that became a runtime input
    device: Any = None  # where it must be (several devices: a tuple); None follows the others

    def struct(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, self.dtype, weak_type=self.weak)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class Call(AnyLengths):
    """An op with its static arguments: arrays in, a tuple of arrays out.

    Made through `call_of`, which returns the same object for equal arguments; compared by
    identity ever after.
    """

    __slots__ = ("op", "args", "kwargs", "numerics", "_abstract", "many", "wrap", "__weakref__")

    def __init__(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.op, self.args, self.kwargs = op, args, kwargs
        self.numerics = numerics()  # that it was recorded under, whenever it is evaluated
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
    def arguments(self) -> dict[str, Any]:
        """The arguments by the names of their parameters."""
        return dict(zip(self.op.parameters, self.args, strict=False)) | self.kwargs

    @property
    def residuals(self) -> bool:
        return self.op.residuals

    @property
    def root(self) -> AnyLengths:
        return _alike(self.op, self.numerics) if self.op.sizes else self

    def sized(self, size: Size) -> Call:
        if not self.op.sizes:
            return self
        made = Call(self.op, *_resized(self, size))
        made.numerics = self.numerics
        return made

    def pattern(self, size: Size) -> Any:
        return freeze(_resized(self, size)) if self.op.sizes else None

    def shapes(self) -> list[tuple[int, ...]]:
        if not self.op.sizes:
            return []
        named = [*zip(self.op.parameters, self.args, strict=False), *self.kwargs.items()]
        given = [x for name, x in named if name in self.op.sizes]
        return [tuple(x) if type(x) in (tuple, list) else (x,) for x in given if _is_lengths(x)]

    def learn(self, traced: Call) -> None:
        self.many, self.wrap = traced.many, traced.wrap

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        if self.numerics is not numerics():
            with evaluated_under(self.numerics):
                return self.evaluate(*arrays)
        if self.op.random:  # keys travel between nodes as plain words
            key = jax.random.wrap_key_data(arrays[0], impl="threefry2x32")
            arrays = (key, *arrays[1:])
        with self._as_exact(arrays):
            out = self.op.fn(*fill(self.args, arrays), **fill(self.kwargs, arrays))
        if isinstance(out, (tuple, list)):
            self.many = True
            self.wrap = type(out) if hasattr(out, "_fields") else None
            return tuple(out)
        return (out,)

    def _as_exact(self, arrays: Sequence[Any]) -> Any:
        """Return a context in which products are as exact as they were when it was recorded."""
        if self.op.namespace == "opaque":
            return products_as(self.numerics.opaque, arrays)
        return products_as(None if self.op.elementwise else self.numerics.matmul, arrays)

    def faults(self, *arrays: Any) -> list[Fault]:
        if self.op.check is None:
            return []
        return list(self.op.check(*fill(self.args, arrays), **fill(self.kwargs, arrays)) or ())

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Infer shapes and dtypes of the outputs; the body's own errors pass through."""
        known = self._abstract.get(avals)
        if known is None:
            found = of_any_lengths(self, avals, lambda: abstract(self.evaluate, avals))
            known = tuple([Aval(*out) for out in found])
            if self.op.fits:
                check_numbers(self.op, self.args, self.kwargs, known[0].dtype)
            self._abstract[avals] = known
        return known


def _is_lengths(x: Any) -> bool:
    return all([type(n) is int for n in x]) if type(x) in (tuple, list) else type(x) is int


@functools.cache
def _alike(op: Op, under: Any) -> AnyLengths:
    """Return the object that calls of an op have in common which differ in lengths alone."""
    return AnyLengths()


def _resized(call: Call, size: Size) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments with other lengths."""
    op = call.op

    def other(x: Any) -> Any:
        if type(x) is int:
            return size(x)
        return type(x)(map(other, x)) if type(x) in (tuple, list) else x

    named = zip(op.parameters, call.args, strict=False)
    args = tuple([other(x) if name in op.sizes else x for name, x in named])
    kwargs = {name: other(x) if name in op.sizes else x for name, x in call.kwargs.items()}
    return args, kwargs


def abstract(fn: Callable[..., tuple[Any, ...]], avals: Sequence[Aval]) -> tuple[Aval, ...]:
    with jax.enable_x64(True):
        outs = jax.eval_shape(fn, *[a.struct() for a in avals])
    return tuple(Aval(tuple(o.shape), np.dtype(o.dtype)) for o in outs)


_CALLS: weakref.WeakValueDictionary[Any, Call] = weakref.WeakValueDictionary()


def call_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Return the one `Call` of `op` with this template."""
    key = (op, freeze(args), freeze(kwargs), numerics())
    call = _CALLS.get(key)
    if call is None:
        call = _CALLS[key] = Call(op, args, kwargs)
    return call


class Input(NamedTuple):
    """A value that comes from outside the program."""

    aval: Aval

    @property
    def avals(self) -> tuple[Aval, ...]:
        return (self.aval,)


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
        """The same for equal programs; it is flat, as the garbage collector walks what is kept."""
        flat: list[Any] = []
        for entry in self.entries:
            if isinstance(entry, Node):
                flat += (entry.call, len(entry.inputs), *entry.inputs)
            else:
                flat.append(entry.aval)
        return (tuple(flat), self.outputs, self.residuals)

    def first_values(self) -> list[int]:
        """Return the number of the first value of each entry."""
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
