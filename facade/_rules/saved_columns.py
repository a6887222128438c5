"""Columns of the op table that say what PyTorch's nodes save: tensors and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leafax.functional.program.program import Call, Slot

from .._core.trie import NOWHERE, State, Value
from .missing_formulas import has_no_formula


def saved_places(state: State) -> tuple[tuple[str, int], ...]:
    """List what PyTorch would save of a step: `(saved name, operand index or -1 - output)`."""
    if state.saves is None:
        state.saves = _saved_places(state)
    return state.saves


def value_at(state: State, place: int) -> Value:
    """Return an operand of a state, or by `-1 - k` its `k`-th result."""
    return state.operands[place] if place >= 0 else state.values[-1 - place]


def _saved_places(state: State) -> tuple[tuple[str, int], ...]:
    call = state.call
    op = getattr(call, "op", None)
    if op is None or has_no_formula(state):
        return ()
    slots = slots_of(call)
    first = op.parameters[1 if op.random else 0] if op.parameters else ""
    found = []
    for name, needed_by in op.saves.items():
        param = first if needed_by == "self" else needed_by.lstrip("*")
        given = [state.operands[i] for i in slots.get(param, ())]
        if needed_by[:1] != "*" and not any(map(_has_edge, given)):
            continue
        if needed_by[:1] == "*" and param and all(v.weak for v in given):
            continue
        if name in ("result", "result0"):
            found.append((name, -1))
        elif name.startswith("result") and name[6:].isdigit():
            found.append((name, -1 - int(name[6:])))
        elif name in slots or name == "self":
            for i in slots.get(first if name == "self" and "self" not in slots else name, ()):
                found.append((name, i))
        else:
            fields = getattr(call.wrap, "_fields", ())
            if name in fields:
                found.append((name, -1 - fields.index(name)))
            elif name in _RESULTS and not call.many:
                found.append((name, -1))
    if op.name not in WRAPPING:  # a number that became an input is still a number
        found = [f for f in found if f[1] < 0 or not state.operands[f[1]].weak]
    # PyTorch saves, and unpacks, in the order of names, results last.
    return tuple(sorted(found, key=lambda f: (f[1] < 0, f[0])))


# What PyTorch's formulas call the only result of an op that has more in PyTorch.
_RESULTS = frozenset({"inverse", "L", "S", "eigenvalues"})


def _has_edge(value: Value) -> bool:
    """Tell whether a gradient goes there; none goes to views that were made in `no_grad`."""
    return value.requires_grad and value.role != NOWHERE


def slots_of(call: Call) -> dict[str, list[int]]:
    """Map each parameter's name to the operand indices that it took."""
    slots: dict[str, list[int]] = {}
    for name, template in call.arguments.items():
        for index in _indices(template):
            slots.setdefault(name, []).append(index)
    return slots


def _indices(template: Any) -> Iterator[int]:
    if isinstance(template, Slot):
        yield template.index
    elif isinstance(template, (tuple, list)):
        for x in template:
            yield from _indices(x)


def argument(call: Call, name: str) -> Any:
    """Give a parameter's argument, which may be a `Slot`; None if there is no such parameter."""
    if name == "self":
        name = call.op.parameters[1 if call.op.random else 0]
    return static_argument(call, name) if name in call.op.parameters else None


def is_number(state: State, name: str) -> bool:
    """Tell whether an op that may take a tensor for this was given a number."""
    given = argument(state.call, name)
    if isinstance(given, Slot):
        return state.operands[given.index].weak
    return isinstance(given, (int, float, complex))


def static_argument(call: Call, name: str) -> Any:
    """Give a static argument by its parameter's name: `grad_fn._saved_dim`."""
    given = call.arguments
    if name in given:
        return given[name]
    return call.op.signature.parameters[name].default


def active_saves(state: State) -> bool:
    """Tell whether the node has anything that a backward without `retain_graph` frees."""
    op = getattr(state.call, "op", None)
    if op is None or not op.saves and op.namespace == "opaque":
        return True
    if op.backward == "CopySlices" or op.random:  # the inner op, a mask of what was dropped
        return True
    return bool(saved_places(state)) or bool(op.saves) and _saves_number(state)


# A Python number in these is made a tensor, which is saved like any other.
WRAPPING = frozenset({"mul", "div", "true_divide"})


def wraps(call: Call, given: Any) -> bool:
    """Tell whether a number that was given is saved as a tensor."""
    return call.op.name in WRAPPING and type(given) in (int, float, complex, bool)


def _saves_number(state: State) -> bool:
    call = state.call
    if call.op.name not in WRAPPING or not any(v.requires_grad for v in state.operands):
        return False
    given = (*call.args, *call.kwargs.values())
    return any(type(a) in (int, float, complex) for a in given)
