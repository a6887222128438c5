"""PyTorch's `torch.mtia`: leafax runs on no such device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from .._core.absent.devices import NoBlock as device
from .._core.absent.devices import answer_none_of as memory_stats
from .._core.absent.devices import answer_zero as max_memory_allocated
from .._core.absent.devices import answer_zero as memory_allocated
from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import fail
from .._core.absent.devices import is_available as is_available
from .._core.absent.devices import is_available as is_initialized
from .._core.absent.devices import list_states as get_rng_state_all
from .._core.absent.stand_ins import do_nothing as manual_seed
from .._core.absent.stand_ins import do_nothing as manual_seed_all
from .._core.absent.stand_ins import do_nothing as record_memory_history
from .._core.absent.stand_ins import do_nothing as reset_peak_memory_stats
from .._core.absent.stand_ins import do_nothing as seed
from .._core.absent.stand_ins import do_nothing as seed_all
from .._core.absent.stand_ins import do_nothing as set_rng_state_all
from .._core.absent.stand_ins import refuse, refuse_class

__all__ = [
    "Event", "MTIAGraph", "Stream", "StreamContext", "attach_out_of_memory_observer",
    "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "get_device_capability", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "graph", "graph_pool_handle", "init", "initial_seed", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "memory_allocated", "memory_stats", "record_memory_history",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state",
    "set_rng_state_all", "set_stream", "snapshot", "stream", "synchronize",
]  # fmt: skip


def _unable(name: str) -> Callable[..., NoReturn]:
    """Make a function that raises PyTorch's error without this backend."""
    return fail(RuntimeError, f"Cannot execute {name}() without MTIA backend.")


_NONE = "leafax runs on no such device"
Event = refuse_class("mtia.Event", _NONE)
Stream = refuse_class("mtia.Stream", _NONE)
StreamContext = refuse_class("mtia.StreamContext", _NONE)
MTIAGraph = refuse_class("mtia.MTIAGraph", _NONE)
graph = refuse("mtia.graph", _NONE)
stream = StreamContext
attach_out_of_memory_observer = refuse("mtia.attach_out_of_memory_observer", _NONE)
current_device = current_stream = default_stream = synchronize = _unable("getCurrentDevice")
get_device_capability = get_device_properties = current_device
empty_cache = _unable("emptyCache")
graph_pool_handle = _unable("graphPoolHandle")
set_device = _unable("setCurrentDevice")
set_stream = _unable("setCurrentStream")
snapshot = _unable("memorySnapshot")
init = get_rng_state = set_rng_state = initial_seed = fail(
    AssertionError, "Torch not compiled with MTIA enabled."
)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True, as PyTorch does of this kind of device."""
    return True
