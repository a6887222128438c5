"""`torch._C._autograd`: saved tensors, and version counters that are set by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.saved_hooks.saved_tensor import SavedTensor as SavedTensor
from .._autograd.saved_hooks.saved_tensor import make_saved_tensor as _make_saved_tensor
from .._autograd.saved_hooks.saved_tensors_hooks import (
    hooks_are_enabled as _saved_tensors_hooks_is_enabled,
)
from .._core.trie import local
from .._runtime.cut import cut

__all__ = [
    "SavedTensor", "_get_current_graph_task_keep_graph", "_make_saved_tensor",
    "_saved_tensors_hooks_is_enabled", "_unsafe_set_version_counter",
]  # fmt: skip


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass that is walking leaves its graph in place; True outside of one."""
    return bool(local.tasks[-1].keep_graph) if local.tasks else True


def _unsafe_set_version_counter(tensors: Sequence[Any], versions: Sequence[int]) -> None:
    """Give each tensor's version counter a value; a write may so be hidden from autograd.

    What is pending runs first. A gradient reads what was saved, not what was written since.

    Raises:
      RuntimeError: for lists of different lengths and for values below 0.
    """
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    cut("a version counter that is set")
    for t, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        if t._vc is None:
            t._vc = [0]
        t._vc[0] = int(version)
