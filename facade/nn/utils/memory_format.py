"""PyTorch's `torch.nn.utils.memory_format`: weights of convolutions in another layout."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all two-dimensional convolutions, and return the module.

    Args:
      module: it and all below it.
      memory_format: `leafax.channels_last` or `leafax.contiguous_format`.
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all three-dimensional convolutions, and return the module.

    Args:
      module: it and all below it.
      memory_format: `leafax.channels_last_3d` or `leafax.contiguous_format`.
    """
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def _converted(module: Any, kinds: tuple[type, ...], memory_format: Any) -> Any:
    layers: list[Any] = [layer for layer in module.modules() if isinstance(layer, kinds)]
    for layer in layers:
        weight: Any = layer.weight
        weight.data = weight.detach().clone(memory_format=memory_format)
    return module
