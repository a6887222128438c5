"""PyTorch's `torch.utils.hooks`: handles of hooks, and what copies of tensors say of hooks."""

from __future__ import annotations

from typing import Any

from .._autograd.graph.hook_handle import RemovableHandle as RemovableHandle
from .._tensor.copying import _warn_of_hooks
from ._backward_hook import BackwardHook as BackwardHook


def unserializable_hook(f: Any) -> Any:
    """Mark a hook, so that copying or pickling its tensor does not warn of it; returns it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each hook of a tensor that is not marked by `unserializable_hook`."""
    _warn_of_hooks(tensor)
