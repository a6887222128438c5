"""`torch._C._autograd`: saved tensors, and version counters that are set by hand."""

from __future__ import annotations

from .._autograd.saved_hooks.saved_tensor import SavedTensor as SavedTensor
from .._autograd.saved_hooks.saved_tensor import make_saved_tensor as _make_saved_tensor
from .._autograd.saved_hooks.saved_tensors_hooks import (
    hooks_are_enabled as _saved_tensors_hooks_is_enabled,
)
from .._core.trie import local
from .._runtime.version_counters import set_versions as _unsafe_set_version_counter

__all__ = [
    "SavedTensor", "_get_current_graph_task_keep_graph", "_make_saved_tensor",
    "_saved_tensors_hooks_is_enabled", "_unsafe_set_version_counter",
]  # fmt: skip


def _get_current_graph_task_keep_graph() -> bool:
    """Return whether the running backward pass keeps its graph; True outside of one."""
    return bool(local.autograd.tasks[-1].keep_graph) if local.autograd.tasks else True
