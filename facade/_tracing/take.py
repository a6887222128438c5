"""Recording an op on values of the trace; what takes tensors is above."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from leafax.functional.program.op import Op

from .._core.trie import State, Trace, Value
from .miss import key_part, miss

_NONE: Mapping[str, Any] = MappingProxyType({})


def take(trace: Trace, op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any] = _NONE) -> State:
    """Step over an op on trace values and static arguments, without cutting the program."""
    parts: list[Any] = [op]
    for a in args:
        parts.append(a if type(a) is Value else key_part(a, trace))
    for name, a in kwargs.items():
        parts += name, key_part(a, trace)
    key = tuple(parts)
    state: State | None = trace.state.next.get(key)
    if state is None:
        for intercept in trace.state.mode.interceptors:
            taken = intercept(op, args, kwargs, key, False)
            if taken is not None:
                return taken[0]  # type: ignore[no-any-return]
        state = miss(trace, key, op, args, kwargs)
    trace.state = state
    return state
