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

from ...program.program import Aval
from ...program.slices import needed_steps
from ...program.symbolic_lengths import general
from ...program.symbolic_traces import Lengths, collect_errors
from ..confined import confined
from .array_rules import Unsupported
from .random import DRAWING, OF_KEYS, RANDOM_RULES, is_threefry
from .rules import ROUNDED, RULES, Cast
from .windows import Product

_Step = tuple[Callable[..., Any], list[int], list[int], list[np.dtype[Any]]]

_NAMES = ("bool", "uint8", "uint32", "uint64", "int32", "int64", "float32", "float64")
_DTYPES = frozenset(map(np.dtype, _NAMES))
_RULES = RULES | RANDOM_RULES
#: At most so many elements has each value that is computed by NumPy.
MOST = 1 << 18


class Evaluator:
    """A traced function, as steps of NumPy.

    Args:
      jaxpr: of the function.
      exact: the outputs must be those of XLA to the last bit, and not only to rounding.
      lengths: fills in those that are symbols in the jaxpr.

    Attributes:
      largest: how many elements its largest value has, or what it makes on the way.
      draws: it computes random words, each with a hundred operations.
      turns: how many steps its loops take, all their turns together; `work`: with its own ones.

    Raises:
      Unsupported: for a primitive, dtype or size that is not NumPy's here.
    """

    def __init__(
        self, jaxpr: ClosedJaxpr, exact: bool = False, lengths: Lengths | None = None
    ) -> None:
        self._lengths, self.largest, self.draws, self.turns = lengths, 1, False, 0
        self._values: list[Any] = []  # the constants, and a place for each other value
        self._steps: list[_Step] = []
        self._exact, self._rounded = exact, False
        places: dict[Any, int] = {}
        self._inputs = [self._place(places, v) for v in jaxpr.jaxpr.invars]
        with np.errstate(all="ignore"):
            outs = self._inline(jaxpr.jaxpr, jaxpr.consts, places)
        self._outputs = [self._read(places, v) for v in outs]
        self.work = len(self._steps) + self.turns

    def __call__(self, *arrays: Any) -> list[Any]:
        """Evaluate the program; the outputs share no memory with the arrays."""
        values = self._values.copy()
        for place, array in zip(self._inputs, arrays, strict=True):
            values[place] = np.asarray(array)
        with np.errstate(all="ignore"):
            for step in self._steps:
                fn, given, made, dtypes = step
                if len(made) == 1:  # `_take`, without a call for each step
                    found = fn(*[values[i] for i in given])
                    values[made[0]] = np.asarray(found, dtypes[0])
                else:
                    _take(step, values)
        return [np.array(values[i]) for i in self._outputs]

    def as_ufunc(self) -> tuple[np.ufunc, list[tuple[int, np.dtype[Any] | None]]] | None:
        """Return the ufunc of NumPy that the whole program is; None if it is more than that.

        Returns:
          the ufunc, and its arguments: which inputs they are, and dtypes that these are cast to.
        """
        if not self._steps or len(self._outputs) != 1:
            return None
        *casts, (fn, given, made, _) = self._steps
        if not isinstance(fn, np.ufunc) or made != self._outputs:
            return None
        arguments: dict[int, Any] = {place: (k, None) for k, place in enumerate(self._inputs)}
        for cast, places, results, dtypes in casts:
            if not isinstance(cast, Cast) or places[0] not in arguments:
                return None
            arguments[results[0]] = (arguments[places[0]][0], dtypes[0])
        if not all(place in arguments for place in given):
            return None
        return fn, [arguments[place] for place in given]

    def _place(self, places: dict[Any, int], variable: Any) -> int:
        aval = self._aval(variable)
        too_many = aval.size > MOST and not confined
        known = aval.dtype in _DTYPES or confined and isinstance(aval.dtype, np.dtype)
        if too_many or not (known or is_threefry(aval.dtype)):
            raise Unsupported
        self.largest = max(self.largest, aval.size)
        places[variable] = len(self._values)
        self._values.append(None)
        return places[variable]

    def _aval(self, variable: Any) -> Any:
        aval = variable.aval
        if self._lengths is None:
            return aval
        return Aval(self._lengths(aval.shape), aval.dtype)

    def _read(self, places: dict[Any, int], variable: Any) -> int:
        if not isinstance(variable, Literal):
            return places[variable]
        self._values.append(np.asarray(variable.val, _dtype(variable)))
        return len(self._values) - 1

    def _inline(self, jaxpr: Any, consts: Sequence[Any], places: dict[Any, int]) -> list[Any]:
        """Add the steps of a program whose inputs have their places; its output variables."""
        for variable, const in zip(jaxpr.constvars, consts, strict=True):
            self._values[self._place(places, variable)] = np.asarray(const)
        for eqn in _needed(jaxpr):
            inner = _inner(eqn)
            given = [self._read(places, v) for v in eqn.invars]
            if inner is not None:
                within = dict(zip(inner.jaxpr.invars, given, strict=True))
                outs = self._inline(inner.jaxpr, inner.consts, within)
                for variable, out in zip(eqn.outvars, outs, strict=True):
                    places[variable] = self._read(within, out)
                continue
            name = eqn.primitive.name
            self.draws |= name in DRAWING
            rule = self._scan if name == "scan" else _RULES.get(name)
            if rule is None or name not in OF_KEYS and any(map(_is_key, eqn.invars)):
                raise Unsupported
            taken, returned = ([self._aval(v) for v in vs] for vs in (eqn.invars, eqn.outvars))
            parameters = eqn.params
            if self._lengths is not None:
                parameters = {k: self._lengths(p) for k, p in parameters.items()}
            fn = rule(taken, returned, **parameters)
            if isinstance(fn, Product):
                self.largest = max(self.largest, fn.elements)
            made = [self._place(places, v) for v in eqn.outvars]
            step = (fn, given, made, [_dtype(v) for v in eqn.outvars])
            if all(self._values[i] is not None for i in given):
                _take(step, self._values)
                continue
            if self._exact:
                self._check_exact(name, given, eqn.outvars[0].aval.dtype)
            self._steps.append(step)
        return list(jaxpr.outvars)

    def _scan(
        self, given: Any, made: Any, *, jaxpr: ClosedJaxpr, length: int, reverse: bool,
        num_consts: int, num_carry: int, **_: Any,
    ) -> Callable[..., Any]:  # fmt: skip
        """Evaluate a loop over the first dim of its operands."""
        if self._exact:
            raise Unsupported
        body = Evaluator(jaxpr, False, self._lengths)
        self.largest, self.draws = max(self.largest, body.largest), self.draws or body.draws
        self.turns += length * (len(body._steps) + body.turns)
        stacked = [(aval.shape, aval.dtype) for aval in made[num_carry:]]
        order = range(length)[:: -1 if reverse else 1]

        def scanned(*arrays: Any) -> Any:
            consts, rows = arrays[:num_consts], arrays[num_consts + num_carry :]
            carry: Sequence[Any] = arrays[num_consts : num_consts + num_carry]
            found = [np.empty(*like) for like in stacked]
            for i in order:
                outs = body(*consts, *carry, *[x[i] for x in rows])
                carry = outs[:num_carry]
                for out, row in zip(found, outs[num_carry:], strict=True):
                    out[i] = row
            results = [*carry, *found]
            return results if len(results) > 1 else results[0]

        return scanned

    def _check_exact(self, name: str, given: Sequence[int], dtype: Any) -> None:
        """Refuse what is rounded otherwise by XLA, which adds to a product in one instruction."""
        if not jax.numpy.issubdtype(dtype, np.floating):
            return
        if name in ROUNDED or self._rounded and name in ("add", "add_any", "sub"):
            raise Unsupported
        if name == "mul" and not any(map(_is_power, (self._values[i] for i in given))):
            self._rounded = True


def _take(step: _Step, values: list[Any]) -> None:
    fn, given, made, dtypes = step
    found = fn(*[values[i] for i in given])
    if len(made) == 1:
        found = (found,)
    for place, value, dtype in zip(made, found, dtypes, strict=True):
        values[place] = np.asarray(value, dtype)


def _is_power(factor: Any) -> bool:
    """Return True if a factor is known and multiplies exactly: 0 and the powers of 2."""
    return factor is not None and bool(np.isin(np.abs(np.frexp(factor)[0]), (0, 0.5)).all())


def _is_key(variable: Any) -> bool:
    return not isinstance(variable.aval.dtype, np.dtype)


def _dtype(variable: Any) -> np.dtype[Any]:
    """Return the dtype of the array that holds a value; a key is held as its words."""
    return np.dtype(np.uint32) if _is_key(variable) else np.dtype(variable.aval.dtype)


def evaluator(
    fn: Callable[..., Any], arrays: Sequence[Any], exact: bool = False, alone: Any = None
) -> Evaluator | None:
    """Return a function that computes by NumPy for arrays like these; None if XLA has to.

    Args:
      exact: if NumPy's outputs may differ in their last bits, it is for XLA.
      alone: the call that the function evaluates, and the abstract values that it takes.
    """
    if not confined and any(np.size(a) > MOST for a in arrays):
        return None
    found = None if exact or alone is None else general(*alone)
    if found is None:
        return _for_these(fn, arrays, exact)
    it, sizes = found
    call, avals = alone
    trace = it.traced(call, avals, sizes)
    if trace is None:
        return _for_these(fn, arrays, exact)
    if trace.agreed:
        return _supported(trace.jaxpr, exact, trace.lengths(sizes.free))
    expected = _for_these(fn, arrays, exact)
    if expected is not None:
        trace.agreed = _agrees(trace.jaxpr, trace.lengths(sizes.free), arrays, expected)
        if not trace.agreed:
            it.refuse()
    return expected


def _for_these(fn: Callable[..., Any], arrays: Sequence[Any], exact: bool) -> Evaluator | None:
    return _supported(jax.make_jaxpr(fn)(*arrays), exact, None)


def _agrees(
    jaxpr: ClosedJaxpr, lengths: Lengths, arrays: Sequence[Any], expected: Evaluator
) -> bool:
    """Return True if a program for any lengths gives the same bits as the one for these lengths."""
    found = None
    try:
        found = Evaluator(jaxpr, False, lengths)(*arrays)
    except Exception:  # a parameter that symbols are hidden in, say
        pass
    if found is None:
        collect_errors()
        return False
    return _bits(found) == _bits(expected(*arrays))


def _supported(jaxpr: ClosedJaxpr, exact: bool, lengths: Lengths | None) -> Evaluator | None:
    try:
        return Evaluator(jaxpr, exact, lengths)
    except Unsupported:
        return None


def _bits(arrays: Sequence[Any]) -> list[Any]:
    return [(x.dtype, x.shape, x.tobytes()) for x in arrays]


def _needed(jaxpr: Any) -> list[Any]:
    """Return the equations that the outputs come from: JAX leaves tangents of integers too."""
    found = needed_steps(
        reversed(jaxpr.eqns), _variables(jaxpr.outvars), lambda eqn: eqn.outvars,
        lambda eqn: _variables(eqn.invars),
    )  # fmt: skip
    return [eqn for eqn, _ in found][::-1]


def _variables(operands: Sequence[Any]) -> list[Any]:
    return [v for v in operands if not isinstance(v, Literal)]


def _inner(eqn: Any) -> ClosedJaxpr | None:
    """Return the program that an equation calls as it is."""
    if eqn.primitive.name in ("jit", "pjit", "closed_call"):
        return eqn.params["jaxpr"]  # type: ignore[no-any-return]
    if eqn.primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        return eqn.params["call_jaxpr"]  # type: ignore[no-any-return]
    return None
