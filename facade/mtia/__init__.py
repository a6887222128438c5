"""PyTorch's `torch.mtia`: leafax runs on no such device."""

from __future__ import annotations

from .._core.absent.devices import device_count as device_count
from .._core.absent.devices import is_available as is_available
from .._core.absent.devices import is_available as is_initialized
from .._core.absent.stand_ins import do_nothing as empty_cache
from .._core.absent.stand_ins import do_nothing as manual_seed
from .._core.absent.stand_ins import do_nothing as manual_seed_all
from .._core.absent.stand_ins import refuse

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "is_initialized",
    "manual_seed", "manual_seed_all", "synchronize",
]  # fmt: skip

current_device = refuse("mtia.current_device", "leafax runs on no such device")
synchronize = refuse("mtia.synchronize", "leafax runs on no such device")
