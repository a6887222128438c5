"""GPUs by number, name or `torch.device`, and the one that a thread works with."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import jax

from leafax.functional.program.platform import where_data_are_made

from .._core.dtypes import device as device_class
from .._core.jax_devices import chosen, jax_device, list_gpus
from .._runtime.observation import synchronize as _synchronize


def need_gpu() -> None:
    """Raise PyTorch's error where JAX has no GPU."""
    if not list_gpus():
        raise AssertionError("Torch not compiled with CUDA enabled")


def find_gpu(device: Any = None) -> Any:
    """Find JAX's device for a number, a name or a `torch.device`; by default the current one.

    Raises:
      AssertionError: JAX has no GPU.
      ValueError: a device of another type.
      RuntimeError: there is no GPU of this number.
    """
    need_gpu()
    if isinstance(device, int):
        where = device_class("cuda", device)
    else:
        where = device_class("cuda" if device is None else device)
    if where.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    return jax_device(where)


def is_available() -> bool:
    """Return whether JAX has a GPU."""
    return bool(list_gpus())


def device_count() -> int:
    """Count the GPUs that JAX has in this process."""
    return len(list_gpus())


def is_initialized() -> bool:
    """Return whether there is a GPU; JAX takes all that it finds at once."""
    return is_available()


def init() -> None:
    """Do nothing: JAX starts by itself.

    Raises:
      AssertionError: there is no GPU.
    """
    need_gpu()


def current_device() -> int:
    """Return the number of the GPU that "cuda" stands for in this thread."""
    return list_gpus().index(find_gpu())


def set_device(device: Any) -> None:
    """Make "cuda" stand for this GPU in this thread, and make new tensors there.

    Args:
      device: a number; a negative one changes nothing.
    """
    if isinstance(device, int) and device < 0:
        return
    gpu = find_gpu(device)
    chosen.gpu = list_gpus().index(gpu)
    if where_data_are_made() in list_gpus():
        jax.config.update("jax_default_device", gpu)


class device:  # noqa: N801 # PyTorch's name
    """A block in which "cuda" stands for another GPU; None or -1 changes nothing.

    Args:
      device: a number, a name or a `torch.device`.
    """

    def __init__(self, device: Any) -> None:
        self.idx = device
        self._before: int = 0
        self._default: AbstractContextManager[Any] | None = None
        if isinstance(device, (str, device_class)):
            self.idx = device_class(device).index
            if device_class(device).type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {device}")

    def __enter__(self) -> None:
        if self.idx is None or self.idx < 0:
            return
        gpu = find_gpu(self.idx)
        self._before, chosen.gpu = chosen.gpu, list_gpus().index(gpu)
        self._default = jax.default_device(gpu)
        self._default.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        if self._default is not None:
            self._default.__exit__(None, None, None)
            chosen.gpu, self._default = self._before, None


class device_of(device):  # noqa: N801 # PyTorch's name
    """A block in which "cuda" stands for the GPU of a tensor; one on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device: Any = None) -> None:
    """Run the pending program and wait for its results."""
    find_gpu(device)
    _synchronize()


class _CudaDeviceProperties:
    """Facts of a GPU, as far as JAX tells them.

    Attributes:
      name: its kind.
      major, minor: its compute capability.
      total_memory: the bytes that XLA may take of it.
      multi_processor_count: of its streaming multiprocessors; 0 if JAX does not tell.
      warp_size: the threads that run together.
    """

    warp_size, is_integrated, is_multi_gpu_board = 32, 0, 0

    def __init__(self, gpu: Any) -> None:
        self.name = str(gpu.device_kind)
        major, minor = str(gpu.compute_capability).split(".")
        self.major, self.minor = int(major), int(minor)
        self.total_memory = int((gpu.memory_stats() or {}).get("bytes_limit", 0))
        self.multi_processor_count = int(getattr(gpu, "core_count", 0))

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Describe a GPU: its name, its compute capability, the bytes that XLA may take of it."""
    return _CudaDeviceProperties(find_gpu(device))


def get_device_name(device: Any = None) -> str:
    """Return JAX's name for the kind of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, major and minor."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU: XLA computes in bfloat16 on every one."""
    return is_available()


def is_tf32_supported() -> bool:
    """Tell whether there is a GPU whose products may be rounded to TF32."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """Return no architectures: XLA compiles for the GPU that is there."""
    return []


def get_gencode_flags() -> str:
    """Return no flags: XLA compiles for the GPU that is there."""
    return ""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return whether two GPUs differ: XLA copies between those of one process.

    Raises:
      AssertionError: there is no GPU.
    """
    return find_gpu(device) is not find_gpu(peer_device)


def get_allocator_backend() -> str:
    """Return "native": XLA allocates."""
    return "native"


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the part of a GPU's memory that XLA takes, as JAX was told when it started."""
    find_gpu(device)
    return float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75"))
