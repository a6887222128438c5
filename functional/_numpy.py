"""Ops on few elements computed by NumPy: to compile one takes XLA tens of milliseconds.

A program that runs op by op is one that may never be met again, and often it differs from the last
in a length alone: an episode, a sentence. Each of its ops would be compiled for each length. So
what an op traces to is evaluated by NumPy, primitive by primitive, where it has few elements and
NumPy has all its primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from ._numpy_rules import RULES, Unsupported

_Step = tuple[Callable[..., Any], list[int], list[int], list[np.dtype[Any]]]

_DTYPES = frozenset(map(np.dtype, ("bool", "uint8", "int32", "int64", "float32", "float64")))
#: At most so many elements has each value that is computed by NumPy.
MOST = 4096


class Evaluator:
    """What a function traces to, as steps of NumPy.

    Args:
      jaxpr: of the function.

    Raises:
      Unsupported: for a primitive, dtype or size that is not NumPy's here.
    """

    def __init__(self, jaxpr: ClosedJaxpr) -> None:
        self._values: list[Any] = []  # the constants, and a place for each other value
        self._steps: list[_Step] = []
        places: dict[Any, int] = {}
        self._inputs = [self._place(places, v) for v in jaxpr.jaxpr.invars]
        outs = self._inline(jaxpr.jaxpr, jaxpr.consts, places)
        self._outputs = [self._read(places, v) for v in outs]

    def __call__(self, *arrays: Any) -> list[Any]:
        """The outputs; they share no memory with the arrays."""
        values = self._values.copy()
        for place, array in zip(self._inputs, arrays, strict=True):
            values[place] = np.asarray(array)
        with np.errstate(all="ignore"):
            for fn, given, made, dtypes in self._steps:
                found = fn(*[values[i] for i in given])
                if len(made) == 1:
                    found = (found,)
                for place, value, dtype in zip(made, found, dtypes, strict=True):
                    values[place] = np.asarray(value, dtype)
        return [np.array(values[i]) for i in self._outputs]

    def _place(self, places: dict[Any, int], variable: Any) -> int:
        aval = variable.aval
        if aval.dtype not in _DTYPES or aval.size > MOST:
            raise Unsupported
        places[variable] = len(self._values)
        self._values.append(None)
        return places[variable]

    def _read(self, places: dict[Any, int], variable: Any) -> int:
        if not isinstance(variable, Literal):
            return places[variable]
        self._values.append(np.asarray(variable.val, _dtype(variable)))
        return len(self._values) - 1

    def _inline(self, jaxpr: Any, consts: Sequence[Any], places: dict[Any, int]) -> list[Any]:
        """Add the steps of a program whose inputs have their places; its output variables."""
        for variable, const in zip(jaxpr.constvars, consts, strict=True):
            self._values[self._place(places, variable)] = np.asarray(const)
        for eqn in jaxpr.eqns:
            inner = _inner(eqn)
            given = [self._read(places, v) for v in eqn.invars]
            if inner is not None:
                within = dict(zip(inner.jaxpr.invars, given, strict=True))
                outs = self._inline(inner.jaxpr, inner.consts, within)
                for variable, out in zip(eqn.outvars, outs, strict=True):
                    places[variable] = self._read(within, out)
                continue
            rule = RULES.get(eqn.primitive.name)
            if rule is None:
                raise Unsupported
            fn = rule([v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], **eqn.params)
            made = [self._place(places, v) for v in eqn.outvars]
            self._steps.append((fn, given, made, [_dtype(v) for v in eqn.outvars]))
        return list(jaxpr.outvars)


def _dtype(variable: Any) -> np.dtype[Any]:
    return np.dtype(variable.aval.dtype)


def evaluator(fn: Callable[..., Any], arrays: Sequence[Any]) -> Evaluator | None:
    """A function of arrays by NumPy, for arrays like these; None if it is for XLA."""
    if any(np.size(a) > MOST for a in arrays):
        return None
    try:
        return Evaluator(jax.make_jaxpr(fn)(*arrays))
    except Unsupported:
        return None


def _inner(eqn: Any) -> ClosedJaxpr | None:
    """The program that an equation calls as it is."""
    if eqn.primitive.name in ("jit", "pjit", "closed_call"):
        return eqn.params["jaxpr"]  # type: ignore[no-any-return]
    if eqn.primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        return eqn.params["call_jaxpr"]  # type: ignore[no-any-return]
    return None
