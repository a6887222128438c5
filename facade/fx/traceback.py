"""PyTorch's `torch.fx.traceback`: notes that nodes get while a graph is made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_state: dict[str, Any] = {"meta": {}, "preserve": False}


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Give nodes that are made in a block the notes of those that are run."""
    before = dict(_state)
    _state["preserve"], _state["meta"] = enable, dict(_state["meta"])
    try:
        yield
    finally:
        _state.update(before)


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Take a node's notes for those of the nodes that are made in a block."""
    before = _state["meta"]
    if _state["preserve"] and node.meta:
        _state["meta"] = dict(node.meta)
    try:
        yield
    finally:
        _state["meta"] = before


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Note a dict with the nodes that are made in a block, under "custom"."""
    before = _state["meta"]
    noted = {**before.get("custom", {}), **annotation_dict}
    _state["meta"] = {**before, "custom": noted}
    try:
        yield
    finally:
        _state["meta"] = before


def has_preserved_node_meta() -> bool:
    """Tell whether nodes get the notes of those that are run."""
    return bool(_state["preserve"])


def get_current_meta() -> dict[str, Any]:
    """Return the notes that nodes get."""
    return _state["meta"]  # type: ignore[no-any-return]


def format_stack() -> list[str]:
    """Return the lines of the node that is run, as far as they are known."""
    trace = _state["meta"].get("stack_trace")
    return [] if trace is None else [trace]
