"""Tangents of tensors that are written to in place."""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.dual_levels import Duals, levels_below, recording_levels, set_tangent
from ..._core.handle import tensors_in
from ..._core.trie import local
from ..._core.vmap_checks import adopt_example
from ..._dispatch.conj_neg_bits import same_meta
from ..._dispatch.record import apply, record
from ..._dispatch.tangents import dual_base, get_tangent, has_tangent, view_tangent
from ..._storage.enter import enter
from ..graph.fit_gradient import zeros
from .no_forward_derivative import refuse_tangents
from .propagate import keep_for_backward, operands_as_tensors, record_derivative


@cache
def _as_function(variant: Op) -> Op:
    """Return the in-place variant of an op as a function: what is differentiated of a write."""
    return Op(variant.fn, name=variant.name, numbers=variant.numbers, random=variant.random)


def tangents_after_write(
    op: Op, variant: Op, t: Any, args: Any, key: Any, kwargs: Any
) -> dict[int, Any] | None:
    """Return the tangents that `t` has after a write, by level; None if there are none.

    Args:
      variant: the op's in-place variant.
      key: of a random op, or None.
    """
    tensors = list(tensors_in((t, *args, *kwargs.values())))
    if not op.differentiable:
        return None
    if not any(map(has_tangent, tensors)):
        return None
    refuse_tangents(op, tensors, "_")
    before = () if key is None else (key,)
    with recording_levels(()):
        state, _ = record(_as_function(variant), (*before, t, *args), kwargs, budget=False)
    operands = operands_as_tensors(state, [*before, *tensors])
    found = {
        level: record_derivative(state.call, operands, (0,), level) for level in local.mode.dual
    }
    return {level: made[0] for level, made in found.items() if made}


def zero_tangents(t: Any) -> dict[int, Any]:
    """Return tangents of zeros, by level, for a tensor that has others."""
    return {n: zeros(t._v) for n in local.mode.dual if get_tangent(t, n) is not None}


def keep_tangents(t: Any, args: Any) -> None:
    """Keep the tangents of what a recorded write takes for a backward pass, before it writes.

    Those of what is overwritten are copied, as they are about to be written to as well.
    """
    trace = local.trace
    over = t if t._base_ is None else t._base_
    for x in tensors_in(args):
        if x is not over and has_tangent(x):
            keep_for_backward(trace, enter(x, trace), x._duals)
    kept = Duals()
    for level in local.mode.dual:
        along = get_tangent(over, level)
        if along is not None:
            with recording_levels(levels_below(level)):
                kept[level] = apply(TABLE["clone"], along)
    if kept:
        keep_for_backward(trace, enter(over, trace), kept)


def write_tangents(t: Any, tangents: dict[int, Any]) -> None:
    """Give `t` these tangents after a write, and so its base and that base's views."""
    for level, new in tangents.items():
        old = get_tangent(t, level)
        if old is not None:
            with recording_levels(levels_below(level)):
                old.copy_(new)
            continue
        base, lens = dual_base(t)
        if base is not None and same_meta(new, base) and same_meta(new, t):
            set_tangent(base, level, new)  # one tensor for both
        elif base is not None:
            whole = adopt_example(new, zeros(base._v))
            set_tangent(base, level, whole)
            part = view_tangent(whole, lens, level)
            with recording_levels(levels_below(level)):
                part.copy_(new)
            new = part
        set_tangent(t, level, new)
