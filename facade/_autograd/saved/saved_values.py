"""What a node's gradient reads: PyTorch's saved tensors, their versions and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from leafax.functional.program.program import Call, Slot

from ..._core.dtypes import tensor_string
from ..._core.trie import LEAF, NOWHERE, State, Value, local
from ..._rules.no_derivative import has_no_formula
from ..graph.holders import holder_of

if TYPE_CHECKING:
    from ..graph.node import Node

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is "
    "not supported, please use out-of-place `.detach()` instead"
)


class Saved(NamedTuple):
    """An input or result that a node's gradient reads, and the version it had."""

    tensor: Any
    version: int
    vc: Any  # the live version counter, None if nobody can write to it any more
    holder: Any = None  # weak reference to the tensor that held it
    detached: bool = False  # `detach_()` cut that tensor off
    mate: Any = None  # weak reference to what errors take for that tensor after a write
    of: Any = None  # weak reference to what it views or shares, where nobody else has it

    @property
    def now(self) -> int:
        return self.version if self.vc is None else int(self.vc[0])


def saved_places(state: State) -> tuple[tuple[str, int], ...]:
    """`(saved name, operand index or -1 - output)` for what PyTorch would save here."""
    if state.saves is None:
        state.saves = _saved_places(state)
    return state.saves


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
    """Whether a gradient goes there; none goes to views that were made in `no_grad`."""
    return value.requires_grad and value.role != NOWHERE


def slots_of(call: Call) -> dict[str, list[int]]:
    """Parameter name -> the operand indices that it took."""
    slots: dict[str, list[int]] = {}
    given = (*zip(call.op.parameters, call.args, strict=False), *call.kwargs.items())
    for name, template in given:
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
    """What a parameter was given, which may be a `Slot`; None if there is no such parameter."""
    if name == "self":
        name = call.op.parameters[1 if call.op.random else 0]
    return static_argument(call, name) if name in call.op.parameters else None


def is_number(state: State, name: str) -> bool:
    """Whether an op that may take a tensor for this was given a number."""
    given = argument(state.call, name)
    if isinstance(given, Slot):
        return state.operands[given.index].weak
    return isinstance(given, (int, float, complex))


def static_argument(call: Call, name: str) -> Any:
    """A static argument under its parameter's name: `grad_fn._saved_dim`."""
    names = dict(zip(call.op.parameters, call.args, strict=False)) | call.kwargs
    if name in names:
        return names[name]
    return call.op.signature.parameters[name].default


def active_saves(state: State) -> bool:
    """Whether the node has anything that a backward without `retain_graph` frees."""
    op = getattr(state.call, "op", None)
    if op is None or not op.saves and op.namespace == "opaque":
        return True
    if op.backward == "CopySlices" or op.random:  # the inner op, a mask of what was dropped
        return True
    return bool(saved_places(state)) or bool(op.saves) and _saves_number(state)


# A Python number in these is made a tensor, which is saved like any other.
WRAPPING = frozenset({"mul", "div", "true_divide"})


def wraps(call: Call, given: Any) -> bool:
    """Whether a number that was given is saved as a tensor."""
    return call.op.name in WRAPPING and type(given) in (int, float, complex, bool)


def _saves_number(state: State) -> bool:
    call = state.call
    if call.op.name not in WRAPPING or not any(v.requires_grad for v in state.operands):
        return False
    given = (*call.args, *call.kwargs.values())
    return any(type(a) in (int, float, complex) for a in given)


def modified(value: Value, expected: int, now: int, origin: str, shape: Any = None) -> RuntimeError:
    """PyTorch's error for a saved tensor that was written to."""
    if local.anomaly is not None:
        hint = (
            "the backtrace further above shows the operation that failed to compute its gradient. "
            "The variable in question was changed in there or anywhere later. Good luck!"
        )
    else:
        hint = (
            "enable anomaly detection to find the operation that failed to compute its gradient, "
            "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{tensor_string(value.dtype)} {list(shape or value.shape)}]{origin} is at "
        f"version {now}; expected version {expected} instead. Hint: {hint}"
    )


def _shape_now(held: Any) -> Any:
    """The shape that a saved tensor has by now: `t_()` may have changed it."""
    return None if held is None or held._v is None else held._v.shape


def latest_versions(state: State) -> dict[int, int]:
    """The version of each storage of the trace that is at `state`; not to be changed.

    It follows from the path to `state` alone, so it is worked out from where it was asked last: a
    backward pass with hooks asks at each node.
    """
    last, latest = local.latest
    known = last() if last is not None else None
    new: list[State] = []
    at: State | None = state
    while at is not None and at is not known:
        new.append(at)
        at = at.parent
    if at is None:  # not on the way from there
        latest = {}
    if new:
        for s in new:
            for v in s.values:
                if v.version > latest.get(v.storage, 0):
                    latest[v.storage] = v.version
        local.latest = (ref(state), latest)
    return latest


def check_versions(node: Node, latest: dict[int, int], only: int | None = None) -> None:
    """Raise if a tensor that this node saved was written to since.

    Args:
      latest: the version of each storage of the running trace.
      only: the one place to look at.
    """
    from ..graph.saved_origin import origin_of, shape_of

    state = node.state
    overwrites = getattr(getattr(state.call, "op", None), "overwrites", False)
    for name, index in saved_places(state):
        if only is not None and index != only:
            continue
        if overwrites and name == "self":
            continue  # PyTorch saves a clone of what an in-place op overwrites
        if node.saved is not None:
            saved = node.saved.get(index)
            if saved is not None and index >= 0 and _cut_off(state.operands[index], saved):
                raise RuntimeError(DETACHED)
            if saved is None or saved.now == saved.version:
                continue
            value = state.operands[index] if index >= 0 else state.values[-1 - index]
            origin = origin_of(value, node, index, saved)
            held = saved.holder() if saved.holder is not None and index >= 0 else None
            shape = _shape_now(held) or shape_of(node.state, index)
            raise modified(value, saved.version, saved.now, origin, shape)
        if node.trace is None:
            continue
        value = state.operands[index] if index >= 0 else state.values[-1 - index]
        if index >= 0 and value in node.trace.detached:
            raise RuntimeError(DETACHED)
        now = latest.get(value.storage, 0)
        start = node.trace.versions.get(value.storage, 0)
        if node.trace.elsewhere is not None and value.storage in node.trace.elsewhere:
            now = max(now, node.trace.elsewhere[value.storage][0] - start)
        if now != value.version:
            origin = origin_of(value, node, index)
            held = _held(node.trace, value) if index >= 0 else None
            shape = _shape_now(held) or shape_of(node.state, index)
            raise modified(value, start + value.version, start + now, origin, shape)


def _held(trace: Any, value: Value) -> Any:
    """The tensor that the running trace knows as this value, None if it is gone."""
    if value.role == LEAF:
        return trace.sources.get(value)
    holder = holder_of(value) if value.role != NOWHERE else None
    if holder is not None:
        return holder
    known = _known(trace)
    for t, now in known:
        if now.index == value.index and now.state is value.state:
            return t
    op = getattr(value.state.call, "op", None)
    if op is not None and op.view and not op.name.endswith("_"):
        return None  # a view that was written to: nobody can tell which it was
    count = math.prod(value.shape)  # which views in place leave as it is
    for t, now in known:
        if now.storage == value.storage and t._base_ is None and math.prod(now.shape) == count:
            return t
    return None


def _known(trace: Any) -> list[tuple[Any, Value]]:
    """The tensors of the running trace with their values; not the cells of storages."""
    found = [(t, value) for r, value, _ in trace.entered.values() if (t := r()) is not None]
    rest = [t for r in trace.refs if (t := r()) is not None and t._trace is trace]
    found += [(t, t._stale if t._stale is not None else t._v) for t in rest]
    cells = {id(t._store.cell) for t, _ in found if t._store is not None}
    return [(t, value) for t, value in found if id(t) not in cells]


def _cut_off(value: Value, saved: Saved) -> bool:
    """Whether the tensor that was saved has lost its history since."""
    holder = saved.holder() if saved.holder is not None else None
    return saved.detached or (value.role > LEAF and holder is not None and not holder._tracked)


def is_view(value: Value) -> bool:
    """Whether a step made it that views its first operand, with arguments that are no tensors."""
    state = value.state
    call = getattr(state, "call", None)
    if not isinstance(call, Call) or not call.op.view or state.values[value.out] is not value:
        return False
    return not any(isinstance(a, Slot) for a in (*call.args[1:], *call.kwargs.values()))


def lens_of(value: Value) -> tuple[Any, Value]:
    """How a view among the values of a program is seen, and of which value."""
    from ..._core.view_ops import pick

    lens: Any = ()
    while is_view(value):
        call = value.state.call
        op = pick(call.op, value.out) if call.many else call.op
        lens = ((op, call.args[1:], call.kwargs), *lens)
        value = value.state.operands[0]
    return lens, value


def short(name: str) -> str:
    """How errors name a node: without "Backward" and a zero after it."""
    head, found, number = name.rpartition("Backward")
    return head + number.removesuffix("0") if found and (number or "0").isdigit() else name
