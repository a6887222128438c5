"""Updates of an optimizer's parameters: each is one op, and one step once it was recorded."""

from __future__ import annotations

import math
from bisect import bisect_left
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp
import numpy as np

from leafax.functional.lowering.shared_traces import SharedTraces
from leafax.functional.program.op import Op

from ..._core.trie import Trace, Value
from ..._dispatch.macro_steps import MacroStep
from ..._ops.creation.to import by_device, put_beside
from ..._runtime.placing import place_beside
from ..._storage.as_strided_outside import reach
from ..._storage.lay_out import lay_out_as
from ..._storage.strides import layout
from ..._tracing.bundles import Bundle, Kinds
from ..._tracing.undo import Update

_UPDATE_OPS: dict[Any, Op] = {}
_NOTHING = type(None)
# Of hundreds of tensors, in loops that Python's C code runs.
_ARRAY, _SHARES, _DTYPE = attrgetter("_array"), attrgetter("_shares"), attrgetter("_v.dtype")
_DTYPE_OF_VALUE = attrgetter("dtype")
_LITTLE = 1 << 18  # elements that are sooner moved to a device than a program is compiled


def update_op(cls: Any, choices: Any, names: Any, fixed: Any) -> Op:
    """Return the update of several parameters as one op; equal for optimizers of equal class.

    Args:
      cls: the optimizer's class.
      choices: its hyperparameters that choose what is computed.
      names: for each parameter, the names of its state.
      fixed: the numbers that are constants, None for those that enter.
    """
    key = (cls, tuple(choices.items()), names, fixed)
    op = _UPDATE_OPS.get(key)
    if op is not None:
        return op
    update = cls.update

    def body(params: Any, grads: Any, states: Any, numbers: Any) -> Any:
        def one(p: Any, g: Any, *others: Any) -> list[Any]:
            state, entered = dict(zip(keys, others, strict=False)), iter(others[len(keys) :])
            entering = zip(cls.numbers, fixed, strict=True)
            named = {n: next(entered) if f is None else f for n, f in entering}
            new, after = update(p, g, state, named, choices)
            made = [jnp.asarray(after[k]).astype(state[k].dtype) for k in keys]
            return [new.astype(p.dtype), *made]

        traces = SharedTraces()
        new_params, new_states = [], []
        for p, g, held, keys in zip(params, grads, states, names, strict=True):
            new, *after = traces.call(keys, one, [p, g, *held, *numbers])
            new_params.append(new)
            new_states += after
        return (*new_params, *new_states)

    reuses = reused(len(names), sum(map(len, names)))
    op = Op(body, name=cls.__name__, namespace="optim", differentiable=False, reuses=reuses)
    _UPDATE_OPS[key] = op
    return op


def reused(params: int, states: int) -> dict[int, int]:
    """Tell which result of an update overwrites which of its operands.

    Operands are the parameters, their gradients and the states; results parameters and states.
    """
    return {k: k for k in range(params)} | {params + k: 2 * params + k for k in range(states)}


class Updated(NamedTuple):
    """Values that parameters and their states hold after an update: effects of its `MacroStep`."""

    params: tuple[Value, ...]
    held: Kinds


def fit(held: list[Any] | Bundle, known: Kinds) -> bool:
    """Tell whether states are at rest, and of the dtypes recorded: loaded ones may not be.

    Args:
      known: what they held after the update that was recorded.
    """
    if isinstance(held, Bundle):
        if held.arrays is None:
            return False
        given, after = held.kinds.resting, known.resting
        return given is after or [*map(_DTYPE_OF_VALUE, given)] == [*map(_DTYPE_OF_VALUE, after)]
    return are_at_rest(held) and [*map(_DTYPE, held)] == [*map(_DTYPE_OF_VALUE, known.values)]


def replay_update(
    trace: Trace, step: MacroStep, params: Any, before: Any, held: list[Any] | Bundle,
    inputs: list[Any], counts: int,
) -> None:  # fmt: skip
    """Take an update of parameters that nobody shares as it was recorded.

    Args:
      step: its effects are `Updated`.
      before: the values of the parameters.
    """
    arrays, after = trace.arrays, step.effects
    trace.memory.undo.append(Update(params, before, held, len(arrays) + len(inputs)))
    trace.state = step.state
    arrays += inputs
    if isinstance(held, Bundle):
        held.enter(trace, after.held)
    else:
        arrays += map(_ARRAY, held)
        for t, value in zip(held, after.held.values, strict=True):
            t._v = value
            t._array = None
            t._trace = trace
        trace.refs += map(ref, held)
    for p, value in zip(params, after.params, strict=True):
        p._v = value
        p._array = None
        counter = p._vc
        if counter is None:
            p._vc = [counts]
        else:
            counter[0] += counts


class Entering:
    """Numbers of a group's steps; arrays once they are what they were a step before.

    To make an array of a Python number is an eighth of what it takes to call a small program.
    """

    __slots__ = ("_arrays", "_numbers")

    def __init__(self) -> None:
        self._numbers: list[float] | None = None
        self._arrays: list[Any] | None = None

    def as_inputs(self, numbers: list[float]) -> list[Any]:
        """Return what enters the program for `numbers`."""
        if numbers != self._numbers:
            self._numbers, self._arrays = numbers, None
            return numbers
        if self._arrays is None:
            with jax.enable_x64(True):
                self._arrays = [jnp.asarray(x) for x in numbers]  # weakly typed, as numbers are
        return self._arrays


def are_at_rest(tensors: list[Any]) -> bool:
    """Tell whether each tensor holds an array of its own."""
    return _NOTHING not in {*map(type, map(_ARRAY, tensors))} and not any(map(_SHARES, tensors))


def are_simple(trace: Trace, params: Any) -> bool:
    """Tell whether all parameters and gradients are in the trace and share no storage."""
    tensors = [*params, *[p._grad for p in params]]
    return not share(tensors) and all(t._trace is trace and t._v.index >= 0 for t in tensors)


def share(tensors: list[Any]) -> bool:
    """Tell whether any tensor shares storage with another that is alive."""
    return any(map(_SHARES, tensors)) and any(t._shares and t._store is not None for t in tensors)


def split_overlapping(params: list[Any]) -> list[list[Any]]:
    """Split parameters into lists that are updated at once: none shares elements with another.

    Those of a list are on one device. What is updated later reads what the updates before it wrote,
    as PyTorch's loop does.
    """
    groups = by_device(params)
    if len(groups) > 1:
        return [part for group in groups for part in split_overlapping(group)]
    parts: list[list[Any]] = [[]]
    taken: dict[int, list[tuple[int, int]]] = {}  # by memory: where each begins and ends
    for p in params:
        memory, here = id(p), (0, 1)
        if p._shares and p._store is not None:
            found = layout(p)
            memory = id(p._store)
            here = found.offset, found.offset + reach(found.shape, found.strides)
        spans = taken.setdefault(memory, [])
        at = bisect_left(spans, here)
        near = spans[max(at - 1, 0) : at + 1]
        if any(here[0] < end and start < here[1] for start, end in near):
            parts.append([])
            taken = {memory: [here]}
        else:
            spans.insert(at, here)
        parts[-1].append(p)
    return parts


def filled(shape: tuple[int, ...], dtype: Any, number: complex = 0.0) -> Any:
    """Make an array of one number; a small one on the host, where no program is compiled for it."""
    if math.prod(shape) > _LITTLE:
        return jnp.full(shape, number, dtype)
    return jax.device_put(np.full(shape, number, dtype), may_alias=False)


def laid_beside(p: Any, made: Any) -> Any:
    """Lay a new tensor of a parameter's state out as the parameter is, and where it is."""
    made = place_beside(p, put_beside(p, made))
    return lay_out_as(p, made) if made.shape == p.shape else made
