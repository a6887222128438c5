"""PyTorch's `torch.cuda.memory`: what XLA tells of a GPU's memory."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import do_nothing as caching_allocator_enable
from .._core.absent.stand_ins import do_nothing as ipc_collect
from .._core.absent.stand_ins import do_nothing as reset_accumulated_memory_stats
from .._core.absent.stand_ins import do_nothing as reset_max_memory_allocated
from .._core.absent.stand_ins import do_nothing as reset_max_memory_cached
from .._core.absent.stand_ins import do_nothing as reset_peak_memory_stats
from .._core.absent.stand_ins import do_nothing as set_per_process_memory_fraction
from .._core.absent.stand_ins import refuse, refuse_class
from .._core.dtypes import device as device_class
from .._core.jax_devices import jax_device, list_gpus
from .._runtime.held_memory import held_memory

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_enable", "empty_cache", "ipc_collect",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip

_XLA = "XLA allocates; JAX's environment variables tell it how"
CUDAPluggableAllocator = refuse_class(
    "cuda.CUDAPluggableAllocator", _XLA, module="leafax.cuda.memory"
)
MemPool = refuse_class("cuda.MemPool", _XLA, module="leafax.cuda.memory")
memory_snapshot = refuse("cuda.memory_snapshot", "`jax.profiler` shows a GPU's memory")


def find_gpu(device: Any = None) -> Any:
    """Find JAX's device for a number, a name or a `torch.device`; by default the first."""
    where = (
        device_class("cuda", device) if isinstance(device, int) else device_class(device or "cuda")
    )
    return jax_device(where)


def _statistics(device: Any) -> dict[str, int]:
    return find_gpu(device).memory_stats() or {} if list_gpus() else {}


def _read(name: str) -> Any:
    def read(device: Any = None) -> int:
        return int(_statistics(device).get(name, 0))

    read.__doc__ = f"Return XLA's `{name}` of a GPU, 0 without one."
    return read


memory_allocated = _read("bytes_in_use")
max_memory_allocated = _read("peak_bytes_in_use")
memory_reserved = memory_cached = _read("pool_bytes")
max_memory_reserved = max_memory_cached = _read("peak_pool_bytes")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes of a GPU that are free for XLA, and all that XLA may take.

    Raises:
      AssertionError: there is no GPU.
    """
    if not list_gpus():
        raise AssertionError("Torch not compiled with CUDA enabled")
    found = _statistics(device)
    limit = found.get("bytes_limit", 0)
    return limit - found.get("bytes_in_use", 0), limit


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the statistics of a GPU's memory under PyTorch's names, none without one."""
    names = {
        "allocated_bytes.all.current": "bytes_in_use",
        "allocated_bytes.all.peak": "peak_bytes_in_use",
        "reserved_bytes.all.current": "pool_bytes",
        "reserved_bytes.all.peak": "peak_pool_bytes",
    }
    found = _statistics(device)
    return {name: found.get(xla, 0) for name, xla in names.items()} if found else {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the statistics of XLA as a text."""
    return "\n".join(f"{name}: {value}" for name, value in _statistics(device).items())


def empty_cache() -> None:
    """Do nothing: freed memory stays with XLA, whose arrays all take from it."""
