"""Operands that gradients read, worked out by tracing them once."""

from __future__ import annotations

from typing import Any

from leafax.functional.execution.numpy.joins import reads_nothing
from leafax.functional.lowering.lower import needed_inputs
from leafax.functional.lowering.vjp import vjp_of
from leafax.functional.program.dtypes import is_differentiable

from .._core.locks import set_aside
from .._core.trie import State
from .saved_columns import argument


def wanted_of(state: State) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(state.operands) if v.requires_grad)


def given_of(state: State) -> tuple[int, ...]:
    return tuple(k for k, v in enumerate(state.values) if is_differentiable(v.dtype))


_needed: dict[Any, frozenset[int]] = {}


def needed(state: State, wanted: tuple[int, ...] | None = None) -> frozenset[int]:
    """Find the operands that the gradient of a state reads.

    Args:
      wanted: the operands whose gradients are asked for; by default all that require grad.
    """
    if wanted is None:
        wanted = wanted_of(state)
    if not wanted:
        return frozenset()
    if reads_nothing(state.call, tuple([v.aval for v in state.operands])):
        return frozenset()
    given = given_of(state)
    vjp = vjp_of(state.call, len(state.operands), wanted, given)
    avals = (*[v.aval for v in state.operands], *[state.values[k].aval for k in given])
    return reads(vjp, avals) | (frozenset({0}) if takes_input(vjp) else frozenset())


def takes_input(call: Any) -> bool:
    """Tell whether PyTorch's gradient takes the input without reading its values."""
    inner = getattr(call, "call", None)
    op = getattr(inner, "op", None)
    if inner is None or op is None:
        return False
    if op.name == "pad":
        return argument(inner, "mode") in ("reflect", "replicate")
    return op.name in _OF_INPUT


_OF_INPUT = frozenset({
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "nll_loss", "nll_loss2d",
})  # fmt: skip


def reads(vjp: Any, avals: tuple[Any, ...]) -> frozenset[int]:
    """Find which of the differentiated call's inputs a gradient reads, among those it is given."""
    if vjp.missing:  # those that it does not read were left out when it was recorded
        return frozenset(range(vjp.n - len(vjp.missing)))
    key = (vjp, avals)
    found = _needed.get(key)
    if found is None:
        with set_aside():  # it is traced: a whole model, perhaps
            found = _needed[key] = needed_inputs(vjp, avals)
    return found


def count_traced() -> int:
    """Count the gradients that were traced to know what they read, which no lock is held for."""
    return len(_needed)
