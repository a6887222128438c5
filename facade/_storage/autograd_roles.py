"""One value in several roles: the same number in the program, another place in autograd."""

from __future__ import annotations

from typing import Any

from .._core.trie import NOWHERE, State, Trace, Value, local, resting


def alias(trace: Trace, value: Value, kind: Value, fresh: bool = False) -> Value:
    """Step to a value with the number of `value` and the autograd role of `kind`.

    With `fresh` it counts as a storage of its own: writing to it later does not touch `value`.
    """
    if kind.role == value.role == NOWHERE and not fresh and kind.inference == value.inference:
        return value
    key = ("as", value, kind, fresh)
    if not fresh:
        return _same_number(trace, key, value, kind, value.storage, value.version)
    # No entry's number, and unique along the path.
    return _same_number(trace, key, value, kind, -3 - trace.state.depth, 0)


def keep_edge(trace: Trace, value: Value, old: Value, inference: bool | None = None) -> Value:
    """Step to a value with the number of `value` and the edge of `old`: data was overwritten
    behind autograd's back, the gradient's way stays."""
    key = ("edge", value, old, inference)
    return _same_number(trace, key, value, old, value.storage, value.version, True, inference)


def overwritten(trace: Trace, value: Value, old: Value, counts: int = 1) -> Value:
    """Step to a value with the number of `value` for a tensor that held `old`: a write that
    autograd does not record, but that whoever saved the tensor, or a view of it, must notice."""
    return tag(trace, value, old, old.storage, old.version + counts)


def tag(
    trace: Trace, value: Value, kind: Value, storage: int | None = None, version: int = 0
) -> Value:
    """Step to a value with the number of `value`, the role of `kind` and this storage."""
    storage, version = (value.storage, value.version) if storage is None else (storage, version)
    same = kind.role == value.role and kind.requires_grad == value.requires_grad
    same = same and kind.inference == value.inference
    if same and storage == value.storage and version == value.version:
        return value
    key = ("tag", value, kind, storage, version)
    return _same_number(trace, key, value, kind, storage, version, kind.index >= 0)


def apart(trace: Trace, value: Value, kind: Value) -> Value:
    """Step to a value with the number of `value` for another tensor, detached from it."""
    new = _same_number(trace, ("apart", value, kind), value, kind, value.storage, value.version)
    new.apart = trace.state.depth
    return new


def spread(trace: Trace, value: Value, strides: tuple[int, ...] | None) -> Value:
    """Step to `value` with these strides; only one tensor may hold it."""
    new = _same_number(trace, ("laid", value, strides), value, value, value.storage, value.version)
    new.strides, new.edge = strides, value.edge
    new.resting = resting(new.aval, new.requires_grad, new.role, new.inference, strides)
    if value in trace.sources:
        trace.sources[new] = trace.sources[value]
    return new


def _same_number(
    trace: Trace, key: Any, value: Value, kind: Value, storage: int, version: int,
    edge: bool = False, inference: bool | None = None,
) -> Value:  # fmt: skip
    """Step by this key to a value with the number of `value`, else like `kind`.

    Args:
      edge: it goes where `kind` goes, too.
      inference: whether it is an inference tensor's; as `kind` is by default.
    """
    state = trace.state
    after = state.next.get(key)
    if after is None:
        after = State(state, None, state.mode)
        made = after.value = Value(
            value.index, value.aval, requires_grad=kind.requires_grad, role=kind.role,
            state=value.state, out=value.out, storage=storage, version=version,
            inference=kind.inference if inference is None else inference, strides=value.strides,
        )  # fmt: skip
        made.apart = value.apart
        if edge:
            made.edge = kind.edge
        after.values = (made,)
        local.trie.states += 1
        state.next[key] = after
    trace.state = after
    return after.value  # type: ignore[no-any-return]
