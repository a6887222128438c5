"""Writing to many tensors by one op: gradients that are clipped, averages that move on.

An op a tensor would make a model of hundreds of parameters slow to record and to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.grad_modes import no_grad
from ..._core.trie import local
from ..._dispatch.record import record
from ..._storage.autograd_roles import overwritten
from ..._storage.overlap import check_overlap
from ..._storage.write import write
from ..._tracing.inputs import NUMBER, add_input, make
from ..._tracing.loop_cuts import cut_for_budget, over_budget
from ..writes.apply_inplace import check_inplace, frozen, written_anyway

_MUL = TABLE["mul"]  # any op that writes to each element


def update_many(
    op: Op, targets: Sequence[Any], *others: Any, numbers: Sequence[float] = (), counts: int = 1
) -> list[Any]:
    """Record `op(targets, *others, numbers)` and write its first results into the targets.

    Args:
      op: returns a new value for each target, in its shape and dtype, and then any others.
      others: tensors, sequences of tensors, or static values.
      numbers: become inputs of the program: other values compile nothing.
      counts: how many writes the version counters are to see.

    Returns:
      The op's other results, as tensors.
    """
    if any(map(frozen, targets)):
        with written_anyway():
            return update_many(op, targets, *others, numbers=numbers, counts=counts)
    with no_grad():
        if over_budget(local.trace):
            cut_for_budget(local.trace)
        for t in targets:
            check_inplace(t, False)
            if t._lens:
                check_overlap(_MUL, t, ())
        numbers = [float(x) for x in numbers]  # a tensor is observed, which cuts the trace
        trace = local.trace
        inputs = tuple(add_input(trace, NUMBER[float], x) for x in numbers)
        state, trace = record(op, (tuple(targets), *others, inputs), {}, budget=False)
        results = iter(state.values)
        for t in targets:
            write(t, overwritten(trace, next(results), t._v, counts))
            t._vc[0] += counts - 1
        return [make(value, trace) for value in results]
