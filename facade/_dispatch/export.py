"""The running trace as a JAX function with autograd's edges: what `functional.lower` calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.program import Input, Node

from .._core.host_transfer import to_device
from .._core.trie import LEAF, NOWHERE, State, Value, local
from .._storage.enter import enter
from .._tracing.leaf_tuples import mark_all_entered


@jax.custom_jvp
def _with_edge_of(new: Any, old: Any) -> Any:
    """Give `new` the derivative of `old`: autograd did not see the write between them."""
    return new


@_with_edge_of.defjvp
def _with_edge_of_jvp(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[1]


def function_of(
    outs: Sequence[Any], ins: Sequence[Any]
) -> tuple[Callable[..., tuple[Any, ...]], list[Any]]:
    """Return the function from `ins` to `outs`, and the arrays that `ins` hold."""
    trace = local.trace
    for t in outs:
        if t._array is not None and t._v.role != LEAF and t._v.index < 0:
            raise ValueError(
                "an output has run already, so its program is gone: lower it before its value is "
                "observed (printed, converted, or used by an optimizer's step)"
            )
    mark_all_entered(trace)  # `ins` are asked where they are in it
    wanted = [enter(t, trace) for t in outs]
    states = trace.state.path()
    arrays = [to_device(a) if isinstance(a, np.ndarray) else a for a in trace.arrays]
    place: dict[int, int] = {}
    inputs = [s for s in states if isinstance(s.entry, Input)]
    for k, t in enumerate(ins):
        found = _input_place(t, inputs)
        if found is None:
            raise ValueError(
                f"input {k} is not an input of the recorded program: no output depends on it, or "
                "it was computed by the program itself"
            )
        place[found] = k

    def fn(*given: Any) -> tuple[Any, ...]:
        env: dict[int, Any] = {}
        number = 0
        for s in states:
            if isinstance(s.entry, Input):
                assert s.value is not None
                env[s.value.index] = given[place[number]] if number in place else arrays[number]
                number += 1
            elif isinstance(s.entry, Node):
                outputs = s.call.evaluate(*[_operand(env, v) for v in s.operands])
                for v, x in zip(s.values, outputs, strict=True):
                    env[v.index] = x if v.requires_grad else _stop(x)
        return tuple(_operand(env, v) for v in wanted)

    return fn, [arrays[i] for i, _ in sorted(place.items(), key=lambda item: item[1])]


def _input_place(t: Any, inputs: list[State]) -> int | None:
    for i, s in enumerate(inputs):
        if s.value is not None and t._v.index == s.value.index and t._trace is local.trace:
            return i
    return None


def _operand(env: dict[int, Any], v: Value) -> Any:
    x = env[v.index]
    if v.role == NOWHERE or not v.requires_grad:
        return _stop(x)
    edge = v.edge
    if edge is not None and edge.index != v.index:
        return _with_edge_of(x, env[edge.index])
    return x


def _stop(x: Any) -> Any:
    if hasattr(x, "dtype") and is_differentiable(x.dtype):
        return lax.stop_gradient(x)
    return x
