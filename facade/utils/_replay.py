"""Record the steps of a checkpointed function once more, behind a barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.program.program import Input

from .._core.trie import State, Value, local
from .._dispatch.record import record
from .._storage.enter import enter
from .._tracing.infer import step
from ._barrier import BARRIER


def replay(
    steps: list[State],
    kept: dict[State, list[Any]],
    grads: list[Any],
    env: dict[int, Value],
    args: set[int],
) -> tuple[dict[int, Value], dict[State, State]]:
    """Record steps once more behind a barrier.

    Args:
      kept: tensors that stand for the results of some of them.
      grads: what has arrived: nothing is computed before it has.
      env: values that stand for others, by number.
      args: numbers of the function's arguments. Other inputs of the program, parameters above
        all, are not put behind the barrier, which may copy.

    Returns:
      What stands for each value, and the new state of each step.
    """
    trace = local.trace
    made = {v.index for s in steps for v in s.values}
    free = {
        v.index: v for s in steps for v in s.operands
        if v.index not in made and not v.weak and (v.index in args or not _at_rest(v))
    }  # fmt: skip
    behind = [env.get(i, v) for i, v in free.items()]
    arrived = [enter(g, trace) for g in grads if g is not None]
    env = dict(env)
    if behind:
        state, _ = record(BARRIER, (*behind, *arrived), {"n": len(behind)}, budget=False)
        env.update(zip(free, state.values, strict=False))
    states: dict[State, State] = {}
    for s in steps:
        values = [env.get(v.index, v) for v in s.operands]
        key = ("again", s.call, *values)
        after = trace.state.next.get(key)
        if after is None:
            after = step(trace, key, s.call, values, differentiable=False)
        trace.state = states[s] = after
        results: Sequence[Value] = after.values
        if s in kept:
            results = [enter(t, trace) for t in kept[s]]
        env.update(zip([v.index for v in s.values], results, strict=True))
    return env, states


def _at_rest(v: Value) -> bool:
    return isinstance(v.state.entry, Input)
