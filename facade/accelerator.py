"""`torch.accelerator`: the device that programs run on if it is not the CPU, without its name.

>>> import leafax
>>> where = leafax.accelerator.current_accelerator()
>>> leafax.accelerator.is_available() == (where is not None)
True
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from . import cpu as _cpu
from . import cuda as _cuda
from ._core.dtypes import ALL as _ALL
from ._core.dtypes import device as _device

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index",
    "current_stream", "device_count", "device_index", "empty_cache", "empty_host_cache",
    "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Tell whether JAX has a GPU in this process."""
    return _cuda.is_available()


def device_count() -> int:
    """Count the GPUs that JAX has in this process."""
    return _cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """Return the accelerator as a `device` without a number; None if there is none.

    Args:
      check_available: accepted for PyTorch's sake: JAX only tells of devices that are there.
    """
    return _device("cuda") if is_available() else None


def _need() -> None:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """Return the number of the GPU that new tensors are made on.

    Raises:
      RuntimeError: if there is none, as all that follows.
    """
    _need()
    return _cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Make new tensors on this GPU."""
    _need()
    _cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:  # noqa: N801 # PyTorch's name
    """A block in which new tensors are made on another GPU; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self._index = self._before = device

    def __enter__(self) -> None:
        if self._index is not None:
            self._before = current_device_index()
            set_device_index(self._index)

    def __exit__(self, *exc_info: object) -> None:
        if self._index is not None:
            set_device_index(self._before)


def synchronize(device: Any = None, /) -> None:
    """Run what is pending and wait for it."""
    _need()
    _cuda.synchronize(device)


def empty_cache() -> None:
    """Nothing to do: freed memory stays with XLA, whose arrays all take from it."""
    _need()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return what the GPU can compute with: all dtypes that leafax has."""
    _need()
    return {"supported_dtypes": set(_ALL)}


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes that arrays take on a GPU now."""
    _need()
    return _cuda.memory_allocated(device)


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes that arrays took on a GPU; see `cuda.max_memory_allocated`."""
    _need()
    return _cuda.max_memory_allocated(device)


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes that XLA took from the GPU."""
    _need()
    return _cuda.memory_reserved(device)


def max_memory_reserved(device: Any = None, /) -> int:
    """Return the most bytes that XLA took from the GPU."""
    _need()
    return _cuda.max_memory_reserved(device)


def memory_stats(device: Any = None, /) -> OrderedDict[str, int]:
    """Return the statistics of a GPU's memory under PyTorch's names."""
    _need()
    return _cuda.memory_stats(device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the bytes of a GPU that are free for XLA, and all that XLA may take."""
    _need()
    return _cuda.mem_get_info(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Begin anew to look for the most memory that is used."""
    _need()
    _cuda.reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Do nothing: XLA counts since the process started."""
    _need()


def empty_host_cache() -> None:
    """Do nothing: XLA keeps the memory of the host that it pins."""
    _need()


def current_stream(device: Any = None, /) -> Any:
    """Return the queue that this thread has entered, or the default one."""
    _need()
    return _cuda.current_stream(device)


def set_stream(stream: Any, /) -> None:
    """Make a queue the current one, in name."""
    _need()
    _cuda.set_stream(stream)


class Graph:
    """Stand for a graph of kernels: a training step is one program already."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _need()
        raise NotImplementedError(
            "leafax has no torch.accelerator.Graph: a training step is one program already; leave "
            "the graph out"
        )


def get_device_module(device: Any = None) -> Any:
    """Return the module of a device's functions: `cuda` or `cpu`; by default where JAX computes.

    Raises:
      RuntimeError: there is no such module.
    """
    if device is None:
        return _cuda if _cuda.is_available() else _cpu
    kind = _device(device).type
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"Invalid device '{kind}': torch has no module of that name")
    return _cuda if kind == "cuda" else _cpu


_end_at_callers(__name__)
