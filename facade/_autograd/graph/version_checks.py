"""Checks that what a node saved was not written to since, with PyTorch's error where it was."""

from __future__ import annotations

import math
from typing import Any
from weakref import ref

from ..._core.dtypes import tensor_string
from ..._core.trie import LEAF, NOWHERE, State, Value, local
from ..._rules.error_texts import DETACHED
from ..._rules.saved_columns import saved_places, value_at
from .holders import holder_of
from .node import Node
from .saved_origin import origin_of, shape_of
from .saved_value import Saved


def modified(value: Value, expected: int, now: int, origin: str, shape: Any = None) -> RuntimeError:
    """Make PyTorch's error for a saved tensor that was written to."""
    if local.settings.anomaly is not None:
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
    """Get the shape that a saved tensor has by now: `t_()` may have changed it."""
    return None if held is None or held._v is None else held._v.shape


def latest_versions(state: State) -> dict[int, int]:
    """Map each storage of the trace that is at `state` to its version; not to be changed.

    It follows from the path to `state` alone, so it is worked out from where it was asked last: a
    backward pass with hooks asks at each node.
    """
    last, latest = local.autograd.latest
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
        local.autograd.latest = (ref(state), latest)
    return latest


def check_versions(node: Node, latest: dict[int, int], only: int | None = None) -> None:
    """Raise if a tensor that this node saved was written to since.

    Args:
      latest: the version of each storage of the running trace.
      only: the one place to look at.
    """
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
            value = value_at(state, index)
            origin = origin_of(value, node, index, saved)
            held = saved.holder() if saved.holder is not None and index >= 0 else None
            shape = _shape_now(held) or shape_of(node.state, index)
            raise modified(value, saved.version, saved.now, origin, shape)
        if node.trace is None:
            continue
        value = value_at(state, index)
        if index >= 0 and value in node.trace.graph.detached:
            raise RuntimeError(DETACHED)
        now = latest.get(value.storage, 0)
        start = node.trace.versions.get(value.storage, 0)
        if node.trace.memory.elsewhere is not None and value.storage in node.trace.memory.elsewhere:
            now = max(now, node.trace.memory.elsewhere[value.storage][0] - start)
        if now != value.version:
            origin = origin_of(value, node, index)
            held = _held(node.trace, value) if index >= 0 else None
            shape = _shape_now(held) or shape_of(node.state, index)
            raise modified(value, start + value.version, start + now, origin, shape)


def _held(trace: Any, value: Value) -> Any:
    """Find the tensor that the running trace knows as this value, None if it is gone."""
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
    """List the tensors of the running trace with their values; not the cells of storages."""
    found = [(t, value) for r, value, _ in trace.entered.values() if (t := r()) is not None]
    found += [(t, t._stale if t._stale is not None else t._v) for t in trace.living()]
    cells = {id(t._store.cell) for t, _ in found if t._store is not None}
    return [(t, value) for t, value in found if id(t) not in cells]


def _cut_off(value: Value, saved: Saved) -> bool:
    """Tell whether the tensor that was saved has lost its history since."""
    holder = saved.holder() if saved.holder is not None else None
    return saved.detached or (value.role > LEAF and holder is not None and not holder._tracked)
