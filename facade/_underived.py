"""Ops without a derivative in PyTorch: what a backward through them raises."""

from __future__ import annotations

from leafax.functional import Slot

from ._trace import State

_PARTLY = {
    ("igamma", "input"): "igamma: input", ("igammac", "input"): "igammac: input",
    ("special.zeta", "input"): "zeta",
}  # fmt: skip
_IN_PLACE = frozenset({"acosh", "asinh", "atanh"})
_NOWHERE = frozenset({"heaviside", "floor_divide", "set_"})


def has_no_formula(state: State) -> bool:
    """Whether PyTorch's node here is `NotImplemented`."""
    op = state.call.op
    if op.name == "remainder":  # of a number by a tensor
        first = state.call.args[0] if state.call.args else None
        return not isinstance(first, Slot) or state.operands[first.index].weak
    return op.name in _NOWHERE and not op.namespace


def written_in_place(state: State) -> bool:
    """Whether the op has a formula, but not for its in-place form."""
    op = state.call.op
    return bool(op.overwrites and op.name in _IN_PLACE)


def refuse(state: State, wanted: tuple[int, ...]) -> None:
    """Raise if the gradient for one of the `wanted` operands is not implemented."""
    op = getattr(state.call, "op", None)
    if op is None:
        return
    if has_no_formula(state):
        name = op.name if op.name == "set_" else f"aten::{op.name}"
        raise RuntimeError(f"derivative for {name} is not implemented")
    what = f"inplace version of {op.name}" if written_in_place(state) else None
    for name, a in zip(op.parameters, state.call.args, strict=False):
        if isinstance(a, Slot) and a.index in wanted:
            what = _PARTLY.get((op.qualified, name), what)
    if what is not None:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")
