"""PyTorch's `torch.utils._foreach_utils`: optimizers of packages group their tensors by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "_device_has_foreach_support", "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices", "_group_tensors_by_device_and_dtype",
    "_has_foreach_support",
]  # fmt: skip


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return []  # the step is one program anyway


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Any], device: Any) -> bool:
    return _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Split lists of tensors by the device and dtype of the first list's.

    Args:
      tensorlistlist: lists of one length, or empty ones.
      with_indices: return the places in the lists, too.
    """
    made: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        key = tensor.device, tensor.dtype
        lists, places = made.setdefault(key, ([[] for _ in tensorlistlist], []))
        for source, target in zip(tensorlistlist, lists, strict=True):
            if source:
                target.append(source[place])
        if with_indices:
            places.append(place)
    return made
