"""Functions that packages take from PyTorch's `torch._utils`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module as _import_module
from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from ._core.dtypes import device as _device
from ._core.jax_devices import list_gpus as _list_gpus
from ._ops.calls.functions import function as _function
from ._tensor.tensor import Tensor

_cat = _function(_TABLE["cat"])


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Put the elements of all tensors, which have one dtype, into one vector."""
    flat: Any = _cat([t.contiguous().view(-1) for t in tensors])
    return flat  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Cut a vector into views with the shapes of tensors."""
    made, start = list[Any](), 0
    for t in tensors:
        made.append(flat.narrow(0, start, t.numel()).view_as(t))
        start += t.numel()
    return tuple(made)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a device: of `"cuda:1"`, `device("cuda", 1)` or 1.

    Raises:
      ValueError: the device has none.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = _device(device)
    if isinstance(device, _device):
        if device.index is not None:
            return int(device.index)
        if device.type == "cpu" and allow_cpu:
            return -1
    if optional and (device is None or device.index is None):
        return 0
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got: {device}"
    )


def _get_available_device_type() -> str | None:
    """Return "cuda" if there is a GPU, else None."""
    return "cuda" if _list_gpus() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module of a kind of device: `leafax.cuda` of "cuda".

    Raises:
      RuntimeError: there is none.
    """
    found = getattr(_import_module("leafax"), device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return found


def _take_tensors(tensors: Sequence[Any], size_limit: int) -> Iterator[list[Tensor]]:
    """Yield tensors in chunks of one dtype and of at most about `size_limit` bytes."""
    buffers: dict[str, tuple[list[Tensor], int]] = {}
    for t in tensors:
        kind, size = t.type(), t.numel() * t.element_size()
        held, held_size = buffers.get(kind, ([], 0))
        if held and held_size + size > size_limit:
            yield held
            held, held_size = [], 0
        buffers[kind] = ([*held, t], held_size + size)
    yield from [held for held, _ in buffers.values() if held]
