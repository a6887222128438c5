"""PyTorch's `torch.xpu`: leafax runs on no Intel GPU."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import is_available as is_available
from .._core.absent.devices import is_available as is_initialized
from .._core.absent.stand_ins import do_nothing, refuse_class

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device",
    "device_count", "empty_cache", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "mem_get_info", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip

_NONE = "leafax runs on no Intel GPU"
Stream = refuse_class("xpu.Stream", _NONE)
Event = refuse_class("xpu.Event", _NONE)
StreamContext = refuse_class("xpu.StreamContext", _NONE)
device = refuse_class("xpu.device", _NONE)
stream = StreamContext

empty_cache = manual_seed = manual_seed_all = seed = seed_all = set_rng_state_all = do_nothing
reset_peak_memory_stats = do_nothing


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: there is no such device."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Return 0: there is no such device."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def get_rng_state_all() -> list[Any]:
    """Return no states: there is no such device."""
    return []


def init(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise PyTorch's error of a build without such devices."""
    raise AssertionError("Torch not compiled with XPU enabled")


current_device = current_stream = get_device_name = get_device_properties = init
get_device_capability = mem_get_info = set_device = synchronize = init
get_rng_state = set_rng_state = init
