"""PyTorch's `torch.mps`: leafax runs on no Apple GPU."""

from __future__ import annotations

from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import is_available as is_available
from .._core.absent.stand_ins import do_nothing as manual_seed
from .._core.absent.stand_ins import do_nothing as seed
from .._core.absent.stand_ins import refuse

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache",
    "get_rng_state", "is_available", "manual_seed", "recommended_max_memory", "seed",
    "set_per_process_memory_fraction", "set_rng_state", "synchronize",
]  # fmt: skip

_NONE = "leafax runs on no Apple GPU"
empty_cache = refuse("mps.empty_cache", _NONE)
synchronize = refuse("mps.synchronize", _NONE)
get_rng_state = refuse("mps.get_rng_state", _NONE)
set_rng_state = refuse("mps.set_rng_state", _NONE)
current_allocated_memory = refuse("mps.current_allocated_memory", _NONE)
driver_allocated_memory = refuse("mps.driver_allocated_memory", _NONE)
recommended_max_memory = refuse("mps.recommended_max_memory", _NONE)
set_per_process_memory_fraction = refuse("mps.set_per_process_memory_fraction", _NONE)
