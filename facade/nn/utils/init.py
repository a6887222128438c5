"""PyTorch's `torch.nn.utils.init`: modules whose parameters begin with any values."""

from __future__ import annotations

import inspect
from typing import Any

from ..._ops.creation.generator import fork_rng
from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module whose parameters and buffers hold any values.

    Args:
      module_cls: its class, which must take `device`.
      args, kwargs: its arguments.

    Raises:
      RuntimeError: `module_cls` is no class of modules, or does not take `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    with fork_rng(devices=[]):  # PyTorch draws nothing here; what was drawn is never computed
        return module_cls(*args, device=device, **kwargs).to_empty(device=device)
