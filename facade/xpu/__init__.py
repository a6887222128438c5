"""PyTorch's `torch.xpu`: leafax runs on no Intel GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .._core.absent.devices import NoBlock as device
from .._core.absent.devices import answer_none_of as memory_stats
from .._core.absent.devices import answer_none_of as memory_stats_as_nested_dict
from .._core.absent.devices import answer_zero as max_memory_allocated
from .._core.absent.devices import answer_zero as max_memory_reserved
from .._core.absent.devices import answer_zero as memory_allocated
from .._core.absent.devices import answer_zero as memory_reserved
from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import fail
from .._core.absent.devices import is_available as is_available
from .._core.absent.devices import is_available as is_initialized
from .._core.absent.devices import list_states as get_arch_list
from .._core.absent.devices import list_states as get_rng_state_all
from .._core.absent.devices import list_states as memory_snapshot
from .._core.absent.stand_ins import do_nothing, refuse, refuse_class

__all__ = [
    "Event", "MemPool", "Stream", "StreamContext", "XPUGraph", "XPUPluggableAllocator",
    "can_device_access_peer", "change_current_allocator", "clock_rate", "current_device",
    "current_stream", "default_generators", "device", "device_count", "device_memory_used",
    "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction",
    "get_rng_state", "get_rng_state_all", "get_stream_from_external", "graph",
    "graph_pool_handle", "init", "initial_seed", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_usage",
    "power_draw", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all",
    "set_stream", "stream", "synchronize", "temperature", "use_mem_pool", "utilization",
]  # fmt: skip

_NONE = "leafax runs on no Intel GPU"
Stream = refuse_class("xpu.Stream", _NONE)
Event = refuse_class("xpu.Event", _NONE)
StreamContext = refuse_class("xpu.StreamContext", _NONE)
MemPool = refuse_class("xpu.MemPool", _NONE)
XPUGraph = refuse_class("xpu.XPUGraph", _NONE)
XPUPluggableAllocator = refuse_class("xpu.XPUPluggableAllocator", _NONE)
stream = StreamContext
streams = SimpleNamespace(Event=Event, Stream=Stream)
change_current_allocator = refuse("xpu.change_current_allocator", _NONE)
get_stream_from_external = refuse("xpu.get_stream_from_external", _NONE)
graph = refuse("xpu.graph", _NONE)
graph_pool_handle = refuse("xpu.graph_pool_handle", _NONE)
make_graphed_callables = refuse("xpu.make_graphed_callables", _NONE)
use_mem_pool = refuse("xpu.use_mem_pool", _NONE)

default_generators: tuple[Any, ...] = ()
empty_cache = manual_seed = manual_seed_all = seed = seed_all = set_rng_state_all = do_nothing
reset_peak_memory_stats = reset_accumulated_memory_stats = set_stream = do_nothing


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: there is no such device."""
    return False


is_tf32_supported = is_current_stream_capturing = is_available


def get_gencode_flags() -> str:
    """Return no flags: there is no such device."""
    return ""


class device_of(device):  # noqa: N801 # PyTorch's name
    """A block for the device of a tensor: none is on an Intel GPU, so it changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(None)


init = fail(AssertionError, "Torch not compiled with XPU enabled")
current_device = current_stream = get_device_name = get_device_properties = init
get_device_capability = mem_get_info = set_device = synchronize = can_device_access_peer = init
get_rng_state = set_rng_state = initial_seed = init
get_per_process_memory_fraction = set_per_process_memory_fraction = init
utilization = temperature = power_draw = clock_rate = memory_usage = device_memory_used = fail(
    ImportError, "pyzes is required; install it with 'pip install pyzes'."
)
