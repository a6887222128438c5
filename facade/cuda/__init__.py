"""The names of `torch.cuda` that PyTorch programs use, answered by JAX for its GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax

from leafax.functional.execution.memory import OutOfMemoryError as OutOfMemoryError

from .._core import missing_names as _missing_names
from .._core.jax_devices import list_gpus as _gpus
from .._runtime.observation import synchronize as _synchronize
from . import amp as amp
from . import memory as memory
from . import random as random
from .memory import *  # noqa: F403
from .memory import find_gpu as _gpu
from .random import *  # noqa: F403


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


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU: XLA computes in bfloat16 on every one."""
    return is_available()


def get_device_properties(device: Any = None) -> Any:
    """Describe a GPU: its name, its compute capability, the bytes that XLA may take of it.

    Raises:
      RuntimeError: JAX has no such device.
    """
    gpu = _gpu(device)
    major, minor = get_device_capability(device)
    total = (gpu.memory_stats() or {}).get("bytes_limit", 0)
    return SimpleNamespace(
        name=str(gpu.device_kind), major=major, minor=minor, total_memory=total,
        multi_processor_count=getattr(gpu, "core_count", 0),
    )  # fmt: skip


class device:  # noqa: N801 # PyTorch's name
    """A block in which new tensors are made on another GPU; None or -1 changes nothing."""

    def __init__(self, device: Any) -> None:
        self._device, self._before = device, None

    def __enter__(self) -> None:
        if self._device is not None and self._device != -1:
            self._before = jax.config.jax_default_device  # type: ignore[attr-defined]
            set_device(self._device)

    def __exit__(self, *exc_info: object) -> None:
        if self._device is not None and self._device != -1:
            jax.config.update("jax_default_device", self._before)


class device_of(device):  # noqa: N801 # PyTorch's name
    """A block in which new tensors are made where another is; on the CPU it changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else None)


def get_arch_list() -> list[str]:
    """Return no architectures: XLA compiles for the GPU that is there."""
    return []


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return False: a tensor is on one GPU."""
    return False


def is_tf32_supported() -> bool:
    """Tell whether there is a GPU whose products may be rounded to TF32."""
    return is_available() and get_device_capability()[0] >= 8


default_generators = ()
_STREAMS = (
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "set_stream", "stream",
)  # fmt: skip
_GRAPHS = (
    "CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing",
    "make_graphed_callables",
)  # fmt: skip
_TENSORS = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip
__getattr__ = _missing_names.missing(
    "leafax.cuda",
    lambda name: None,
    ("comm", "graphs", "nvtx", "streams"),
    {
        **dict.fromkeys(_STREAMS, "streams"),
        **dict.fromkeys(_GRAPHS, "graphs"),
        **dict.fromkeys(_TENSORS, "_tensor_types"),
    },
)
