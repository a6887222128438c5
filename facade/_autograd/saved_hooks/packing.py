"""Operands and results that saved-tensor hooks see, and packing them."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from ..._core.grad_modes import within
from ..._core.handle import tensors_in
from ..._core.trie import NOWHERE, Mode, State, Value, local, resting
from ..._rules.reads_of_gradients import needed
from ..._rules.result_rules import OF_RESULT, RESULT_RULES
from ..._storage.autograd_roles import alias
from ..._storage.enter import enter
from ..._tracing.infer import UNSAVED
from ..._tracing.inputs import make
from .saved_tensors_hooks import Packed, hooks_now


def _handles(state: State, args: Any, kwargs: Any, trace: Any) -> dict[Value, Any]:
    """Map the caller's tensors by their values, without the one that an in-place op overwrites.

    That is saved as a copy; where it is another operand too (`x.mul_(x)`), there it is itself.
    """
    found: dict[Value, Any] = {}
    place = overwritten(state.call.op)
    written = state.operands[place] if place >= 0 else None
    for t in tensors_in((args, tuple(kwargs.values()))):
        value = enter(t, trace)
        if value is written:
            written = None
        else:
            found.setdefault(value, t)
    return found


def overwritten(op: Any) -> int:
    """Find the operand that an op writes to, -1 if none."""
    return -1 if not op.overwrites else 1 if op.random else 0


def operands(node: Any, state: State, args: Any, kwargs: Any, trace: Any) -> list[tuple[int, Any]]:
    """List the operands that hooks see, with their places; the node keeps what else is read."""
    places = [i for _, i in node.saves if i >= 0]
    op = state.call.op
    by_result = op.name in RESULT_RULES or op.qualified in OF_RESULT
    if not (by_result and any(i == -1 for _, i in node.saves)):
        read = [i for i in sorted(needed(state)) if not node.weak[i]]
        floats = [i for i in read if state.operands[i].dtype.kind in "fcV"]
        places += [i for i in floats if i not in places]
        node.kept = {
            i: make(_plain(trace, state.operands[i]), trace)
            for i in sorted(needed(state)) if i not in places
        }  # fmt: skip
    handles = _handles(state, args, kwargs, trace)
    found = []
    for i in dict.fromkeys(places):
        value = state.operands[i]
        own = i != overwritten(state.call.op)
        t = handles[value] if own and value in handles else make(value, trace)
        if not own and t._tracked:
            with within(Mode.of(True, local.mode.inference, local.mode.autocast)):
                t = t.clone()  # what is overwritten is saved as a copy
        found.append((i, t))
    return found


def results(node: Any, outs: list[Any]) -> list[tuple[int, Any]]:
    """List the results that hooks get to see, as the places -1, -2, ..."""
    return [(i, outs[-1 - i]) for i in dict.fromkeys(i for _, i in node.saves) if i < 0]


def pack(node: Any, tensors: list[tuple[int, Any]]) -> None:
    """Call the pack hook on what the gradient will read."""
    pair = hooks_now()
    tensors.reverse()
    while tensors:  # nothing here holds what a hook lets go
        i, t = tensors.pop()
        if t.is_inference():
            raise RuntimeError(UNSAVED)
        edge = node._edges[i] if i >= 0 else (-1 - i if t._tracked else None)
        node.packed[i] = Packed(t, pair, edge)


def _plain(trace: Any, value: Value) -> Value:
    return alias(trace, value, resting(value.aval, False, NOWHERE), fresh=True)


def is_held(t: Any) -> bool:
    """Tell whether a hook kept `t`, or a tensor that shares its memory."""
    return bool(t._shares) or getrefcount(t) > _UNHELD


def _references(tensors: list[Any]) -> list[int]:
    return [_count(t) for t in tensors]


def _count(t: Any) -> int:
    return getrefcount(t)


#: References to an element of a list that a comprehension hands to a function.
_UNHELD = _references([object()])[0]
