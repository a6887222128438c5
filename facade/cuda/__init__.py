"""The names of `torch.cuda` that PyTorch programs use, answered by JAX for its GPUs."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional.execution.memory import OutOfMemoryError as OutOfMemoryError

from .._core.dtypes import device as device_class
from .._core.jax_devices import jax_device
from .._core.jax_devices import list_gpus as _gpus
from .._ops.creation.generator import manual_seed as _manual_seed
from .._runtime.cut import synchronize as _synchronize
from . import amp as amp


def manual_seed(seed: int) -> None:
    """Seed leafax's one generator."""
    _manual_seed(seed)


manual_seed_all = manual_seed


def _gpu(device: Any = None) -> Any:
    """Find JAX's device for a number, a name or a `torch.device`; by default the first."""
    where = (
        device_class("cuda", device) if isinstance(device, int) else device_class(device or "cuda")
    )
    return jax_device(where)


def is_available() -> bool:
    """Return whether JAX has a GPU."""
    return bool(_gpus())


def device_count() -> int:
    """Count the GPUs that JAX has in this process."""
    return len(_gpus())


def is_initialized() -> bool:
    """Return whether there is a GPU; JAX takes all that it finds at once."""
    return is_available()


def init() -> None:
    """Do nothing: JAX starts by itself."""


def current_device() -> int:
    """Return the number of the GPU that new tensors are made on."""
    default = jax.config.jax_default_device  # type: ignore[attr-defined]
    return _gpus().index(default) if default in _gpus() else _gpus().index(_gpu())


def set_device(device: Any) -> None:
    """Make new tensors on this GPU."""
    jax.config.update("jax_default_device", _gpu(device))


def get_device_name(device: Any = None) -> str:
    """Return JAX's name for the kind of a GPU."""
    return str(_gpu(device).device_kind)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, major and minor."""
    major, minor = str(_gpu(device).compute_capability).split(".")
    return int(major), int(minor)


def synchronize(device: Any = None) -> None:
    """Run the pending program and wait for its results."""
    _synchronize()


def empty_cache() -> None:
    """Do nothing: freed memory stays with XLA, whose arrays all take from it."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU: XLA computes in bfloat16 on every one."""
    return is_available()


def _statistic(name: str, device: Any) -> int:
    if not is_available():
        return 0
    return int((_gpu(device).memory_stats() or {}).get(name, 0))


def memory_allocated(device: Any = None) -> int:
    """Count the bytes that arrays take on a GPU now."""
    return _statistic("bytes_in_use", device)


def max_memory_allocated(device: Any = None) -> int:
    """Count the bytes that arrays took at most since the process started."""
    return _statistic("peak_bytes_in_use", device)


def memory_reserved(device: Any = None) -> int:
    """Count the bytes that XLA took from the GPU."""
    return _statistic("pool_bytes", device)
