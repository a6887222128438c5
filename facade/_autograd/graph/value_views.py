"""Views among the values of a program: how one is seen, and of which value."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.program import Call, Slot

from ..._core.trie import Value
from ..._core.view_ops import pick


def is_view(value: Value) -> bool:
    """Tell whether a step made a value that views its first operand, given no other tensors."""
    state = value.state
    call = getattr(state, "call", None)
    if not isinstance(call, Call) or not call.op.view or state.values[value.out] is not value:
        return False
    return not any(isinstance(a, Slot) for a in (*call.args[1:], *call.kwargs.values()))


def lens_of(value: Value) -> tuple[Any, Value]:
    """Find how a view among the values of a program is seen, and of which value."""
    lens: Any = ()
    while is_view(value):
        call = value.state.call
        op = pick(call.op, value.out) if call.many else call.op
        lens = ((op, call.args[1:], call.kwargs), *lens)
        value = value.state.operands[0]
    return lens, value
