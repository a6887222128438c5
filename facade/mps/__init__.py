"""PyTorch's `torch.mps`: leafax runs on no Apple GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import fail
from .._core.absent.devices import is_available as is_available
from .._core.absent.stand_ins import do_nothing as manual_seed
from .._core.absent.stand_ins import do_nothing as seed
from .._core.absent.stand_ins import refuse, refuse_class

__all__ = [
    "Event", "compile_shader", "current_allocated_memory", "device_count",
    "driver_allocated_memory", "empty_cache", "get_rng_state", "is_available", "load_metallib",
    "manual_seed", "recommended_max_memory", "seed", "set_per_process_memory_fraction",
    "set_rng_state", "synchronize",
]  # fmt: skip


def _unable(name: str) -> Callable[..., NoReturn]:
    """Make a function that raises PyTorch's error without this backend."""
    return fail(RuntimeError, f"Cannot execute {name}() without MPS backend.")


_NONE = "leafax runs on no Apple GPU"
Event = refuse_class("mps.Event", _NONE)
compile_shader = refuse("mps.compile_shader", _NONE)
load_metallib = refuse("mps.load_metallib", _NONE)
empty_cache = _unable("emptyCache")
synchronize = _unable("deviceSynchronize")
get_rng_state = set_rng_state = _unable("getDefaultGenerator")
current_allocated_memory = _unable("getCurrentAllocatedMemory")
driver_allocated_memory = _unable("getDriverAllocatedMemory")
recommended_max_memory = _unable("getRecommendedMaxMemory")
set_per_process_memory_fraction = _unable("setMemoryFraction")
