"""PyTorch's `torch.cuda.memory`: what XLA tells of a GPU's memory, and what holds it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from leafax.functional.execution.memory import spell_bytes

from .._core.absent.stand_ins import do_nothing as caching_allocator_enable
from .._core.absent.stand_ins import do_nothing as reset_accumulated_host_memory_stats
from .._core.absent.stand_ins import do_nothing as reset_accumulated_memory_stats
from .._core.absent.stand_ins import do_nothing as reset_peak_host_memory_stats
from .._core.absent.stand_ins import refuse, refuse_class
from .._core.jax_devices import list_gpus
from .._runtime.held_memory import held_memory
from ._devices import find_gpu, get_allocator_backend, get_per_process_memory_fraction, need_gpu
from ._nvml import list_gpu_processes

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator",
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction",
    "host_memory_stats", "host_memory_stats_as_nested_dict", "ipc_collect",
    "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
    "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip

_XLA = "XLA allocates; JAX's environment variables tell it how"
_SHOWN = "`jax.profiler.save_device_memory_profile` shows a GPU's memory"
_HOME = "leafax.cuda.memory"
CUDAPluggableAllocator = refuse_class("cuda.CUDAPluggableAllocator", _XLA, module=_HOME)
MemPool = refuse_class("cuda.MemPool", _XLA, module=_HOME)
caching_allocator_alloc = refuse("cuda.caching_allocator_alloc", _XLA)
caching_allocator_delete = refuse("cuda.caching_allocator_delete", _XLA)
caching_allocator_disabled = refuse("cuda.caching_allocator_disabled", _XLA)
change_current_allocator = refuse("cuda.change_current_allocator", _XLA)
use_mem_pool = refuse("cuda.use_mem_pool", _XLA)
memory_snapshot = refuse("cuda.memory_snapshot", _SHOWN)
_dump_snapshot = refuse("cuda.memory._dump_snapshot", _SHOWN)

_NAMES = {  # PyTorch's, and XLA's
    "allocated_bytes.all.current": "bytes_in_use",
    "allocated_bytes.all.peak": "peak_bytes_in_use",
    "active_bytes.all.current": "bytes_in_use",
    "active_bytes.all.peak": "peak_bytes_in_use",
    "reserved_bytes.all.current": "pool_bytes",
    "reserved_bytes.all.peak": "peak_pool_bytes",
    "allocation.all.allocated": "num_allocs",
}
#: By GPU: the most that XLA had told of when somebody asked to begin anew, and what was in use.
_peaks: dict[Any, tuple[int, int]] = {}


def _of_xla(device: Any) -> dict[str, int]:
    return find_gpu(device).memory_stats() or {} if list_gpus() else {}


def _statistics(device: Any) -> dict[str, int]:
    """Return XLA's statistics of a GPU, with the peak since somebody asked to begin anew."""
    found = _of_xla(device)
    most, then = _peaks.get(find_gpu(device), (-1, 0)) if found else (-1, 0)
    if found.get("peak_bytes_in_use", 0) > most:
        return found
    return found | {"peak_bytes_in_use": max(found.get("bytes_in_use", 0), then)}


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that arrays take on a GPU; 0 without one."""
    return int(_statistics(device).get("bytes_in_use", 0))


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that arrays took on a GPU; 0 without one.

    XLA's figure is of the whole process. After `reset_peak_memory_stats` it counts if it has
    grown; if not, the greater of what is in use now and what was then is told, which the peak
    between the two may have passed.
    """
    return int(_statistics(device).get("peak_bytes_in_use", 0))


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that XLA took of a GPU; 0 without one."""
    return int(_statistics(device).get("pool_bytes", 0))


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that XLA took of a GPU; 0 without one."""
    return int(_statistics(device).get("peak_pool_bytes", 0))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin anew to look for the most memory that is used; see `max_memory_allocated`."""
    if list_gpus():
        found = _of_xla(device)
        _peaks[find_gpu(device)] = (
            int(found.get("peak_bytes_in_use", 0)), int(found.get("bytes_in_use", 0))
        )  # fmt: skip


def _renamed(old: str, now: Any) -> Any:
    """Make the function of an old name, which warns of that."""

    def renamed(device: Any = None) -> Any:
        warnings.warn(
            f"`torch.cuda.{old}` has been renamed to `torch.cuda.{now.__name__}`",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        return now(device)

    renamed.__doc__ = now.__doc__
    return renamed


memory_cached = _renamed("memory_cached", memory_reserved)
max_memory_cached = _renamed("max_memory_cached", max_memory_reserved)
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes of a GPU that are free for XLA, and all that XLA may take.

    Raises:
      AssertionError: there is no GPU.
    """
    need_gpu()
    found = _statistics(device)
    limit = int(found.get("bytes_limit", 0))
    return limit - int(found.get("bytes_in_use", 0)), limit


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return the statistics of a GPU's memory under PyTorch's names, none without one."""
    found = _statistics(device)
    names = {name: int(found.get(xla, 0)) for name, xla in _NAMES.items()} if found else {}
    return OrderedDict(sorted(names.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return the statistics of a GPU's memory as dicts in dicts."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        held = nested
        for part in path:
            held = held.setdefault(part, {})
        held[last] = value
    return nested


def host_memory_stats() -> OrderedDict[str, int]:
    """Return nothing: XLA tells nothing of the host's memory that it pins."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return nothing: XLA tells nothing of the host's memory that it pins."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of the memory of a GPU: what XLA has, and what holds it.

    Without a GPU it tells what holds memory in this process.

    Args:
      device: a GPU.
      abbreviated: leave out what holds it.
    """
    gpu = find_gpu(device) if list_gpus() else None
    line, rows = "|" + "=" * 75 + "|", []
    place = "no GPU" if gpu is None else f"device ID {list_gpus().index(gpu)}"
    found = _statistics(device)
    for name, now, most in (
        ("Allocated memory", "bytes_in_use", "peak_bytes_in_use"),
        ("GPU reserved memory", "pool_bytes", "peak_pool_bytes"),
        ("Largest allocation", None, "largest_alloc_size"),
        ("Limit of XLA", "bytes_limit", None),
    ):
        if any(key in found for key in (now, most)):
            rows.append((name, _spelled(found, now), _spelled(found, most)))
    lines = [line, f"|{f'PyTorch CUDA memory summary, {place}':^75}|", line]
    if rows:
        lines += [_row("Metric", "Cur Usage", "Peak Usage"), "|" + "-" * 75 + "|"]
        lines += [_row(*row) for row in rows] + [line]
    if not abbreviated:
        lines += [_row("Held by", "Bytes", "Arrays"), "|" + "-" * 75 + "|"]
        held = held_memory(gpu)
        lines += [_row(h.kind, spell_bytes(h.nbytes), f"{h.arrays:,}") for h in held] + [line]
    return "\n".join(lines) + "\n"


def _spelled(found: dict[str, int], name: str | None) -> str:
    return spell_bytes(found[name]) if name in found else ""


def _row(name: str, first: str, second: str) -> str:
    return f"| {name:<47} | {first:>10} | {second:>10} |"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Warn that XLA has taken its memory already.

    Raises:
      TypeError: it is no float.
      ValueError: it is not between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    warnings.warn(
        "set_per_process_memory_fraction has no effect: JAX takes memory when it starts. Set "
        f"XLA_PYTHON_CLIENT_MEM_FRACTION={fraction} in the environment of the process",
        stacklevel=2,
    )


def empty_cache() -> None:
    """Do nothing: freed memory stays with XLA, whose arrays all take from it."""


def ipc_collect() -> None:
    """Do nothing: processes share no memory of a GPU.

    Raises:
      AssertionError: there is no GPU.
    """
    need_gpu()
