"""Devices of tensors, and the ways to bring tensors to others."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.meta import META
from leafax.functional.program.platform import where_data_are_made

from .._core.dtypes import device
from .._core.handle import Handle
from .._core.jax_devices import name_of
from .._core.memory_format import strided
from .._core.vmap_checks import refuse_in_vmap

_known: dict[Any, device] = {}


def device_of(array: Any) -> device:
    """Return the device of a JAX array; for anything else where new arrays are made."""
    if hasattr(array, "devices"):
        return _named(next(iter(array.devices())))
    return _named(where_data_are_made())


def _named(where: Any) -> device:
    found = _known.get(where)
    if found is None:
        found = _known[where] = device(*name_of(where))
    return found


def refusal(t: Any, reason: str, error: Exception) -> Exception:
    """Return the error for a look at a tensor that raised one: on `meta` there is nothing to see.

    Args:
      reason: what looks, `"item()"`.
    """
    if t._v.device is not META:
        return error
    if reason == "numpy()":
        return TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )
    if reason in ("item()", "bool()"):
        return RuntimeError("Tensor.item() cannot be called on meta tensors")
    return error


class DeviceMixin(Handle):
    """The part of `Tensor` that is about devices."""

    @property
    def device(self) -> device:
        """Return the device of the values (present or to come)."""
        where = self._v.device
        return device_of(self._array) if where is None else _named(where)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def name(self) -> None:
        """Return None: PyTorch has this attribute from the days when variables had names."""
        return None

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    def get_device(self) -> int:
        """Return the number of the device; -1 on a CPU."""
        where = self.device
        return -1 if where.type in ("cpu", "meta") else int(where.index)

    @property
    def is_meta(self) -> bool:
        return self._v.device is META

    is_sparse = is_quantized = is_nested = is_mkldnn = is_mps = False
    is_xpu = is_ipu = is_xla = is_maia = is_mtia = is_vulkan = is_sparse_csr = False
    layout = strided

    def cpu(self, memory_format: Any = None) -> Any:
        """Return this tensor in the memory of the CPU; itself if it is there."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(
        self, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Any:
        """Return this tensor on a GPU; itself if it is there.

        Raises:
          RuntimeError: JAX has no such GPU.
        """
        return self.to("cuda" if device is None else device, memory_format=memory_format)

    def pin_memory(self, device: Any = None) -> Any:
        """Return this tensor: XLA copies to its devices without pinned memory."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        refuse_in_vmap("is_pinned", self)
        return False

    def share_memory_(self) -> Any:
        """Return this tensor: threads share it as it is, other processes get copies."""
        return self

    def is_shared(self) -> bool:
        return False
