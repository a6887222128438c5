"""PyTorch's `torch.nn.utils._named_member_accessor`: tensors of modules, exchanged by name."""

from __future__ import annotations

from typing import Any

from ..._core.handle import Handle
from ..modules.module import Module

_MISSING = object()


def _check(module: Any, name: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, Handle):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Put a tensor, or None, where a module has a parameter, a buffer or an attribute."""
    _check(module, name, tensor)
    for owned in (module._parameters, module._buffers):
        if name in owned:
            owned[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of another, and return that one.

    It stays a parameter, a buffer or an attribute by its place, whatever its class.

    Args:
      module: the module that has it.
      name: its name, without a dot.
      tensor: a tensor, or None.
      allow_missing: whether the module may have nothing of that name yet.
    """
    _check(module, name, tensor)
    for owned in (module._parameters, module._buffers):
        if name in owned:
            before = owned[name]
            if tensor is _MISSING:
                del owned[name]
            else:
                owned[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not None and before is not _MISSING and not isinstance(before, Handle):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
