"""Steps for which PyTorch has no gradient formula."""

from __future__ import annotations

from leafax.functional.program.program import Slot

from .._core.trie import State

_NOT_IN_PLACE = frozenset({"acosh", "asinh", "atanh"})


_NOWHERE = frozenset({"heaviside", "floor_divide", "set_", "native_channel_shuffle", "detach_copy"})


def has_no_formula(state: State) -> bool:
    """Tell whether PyTorch's node of a step is `NotImplemented`."""
    return state.call.op.backward == "NotImplemented" or leads_nowhere(state)


def leads_nowhere(state: State) -> bool:
    """Tell whether that node names the op in its error."""
    op = state.call.op
    if op.name == "remainder":  # of a number by a tensor
        first = state.call.args[0] if state.call.args else None
        return not isinstance(first, Slot) or state.operands[first.index].weak
    if op.name == "scatter":
        return state.call.arguments.get("reduce") is not None
    return op.name in _NOWHERE and not op.namespace


def lacks_inplace_formula(state: State) -> bool:
    """Tell whether a step's op has a formula, but not for its in-place form."""
    op = state.call.op
    return bool(op.overwrites and op.name in _NOT_IN_PLACE)
