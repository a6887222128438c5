"""The names of `torch.cuda` that PyTorch programs use, answered by JAX for its GPUs."""

from __future__ import annotations

from typing import Any

from leafax.functional.execution.memory import OutOfMemoryError as OutOfMemoryError
from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .._core import missing_names as _missing_names
from .._core.jax_devices import list_gpus as _gpus
from .._ops.creation.generator import default_of as _default_of
from . import amp as amp
from . import memory as memory
from . import random as random
from ._devices import can_device_access_peer as can_device_access_peer
from ._devices import current_device as current_device
from ._devices import device as device
from ._devices import device_count as device_count
from ._devices import device_of as device_of
from ._devices import get_arch_list as get_arch_list
from ._devices import get_device_capability as get_device_capability
from ._devices import get_device_name as get_device_name
from ._devices import get_device_properties as get_device_properties
from ._devices import get_gencode_flags as get_gencode_flags
from ._devices import init as init
from ._devices import is_available as is_available
from ._devices import is_bf16_supported as is_bf16_supported
from ._devices import is_initialized as is_initialized
from ._devices import is_tf32_supported as is_tf32_supported
from ._devices import set_device as set_device
from ._devices import synchronize as synchronize
from ._nvml import clock_rate as clock_rate
from ._nvml import device_memory_used as device_memory_used
from ._nvml import memory_usage as memory_usage
from ._nvml import power_draw as power_draw
from ._nvml import temperature as temperature
from ._nvml import utilization as utilization
from .memory import *  # noqa: F403
from .random import *  # noqa: F403

has_half, has_magma = True, False
_STREAMS = (
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "get_stream_from_external", "set_stream", "stream",
)  # fmt: skip
_GRAPHS = (
    "CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing",
    "make_graphed_callables",
)  # fmt: skip
_TENSORS = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip
_REST = (
    "AcceleratorError", "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage",
    "ComplexDoubleStorage", "ComplexFloatStorage", "CudaError", "DeferredCudaCallError",
    "DoubleStorage", "FloatStorage", "GreenContext", "HalfStorage", "IntStorage", "LongStorage",
    "ShortStorage", "check_error", "cudaStatus", "cudart", "current_blas_handle",
    "current_solver_handle", "get_sync_debug_mode", "set_sync_debug_mode",
)  # fmt: skip
_missing = _missing_names.missing(
    "leafax.cuda",
    lambda name: None,
    ("comm", "graphs", "nccl", "nvtx", "profiler", "streams"),
    {
        **dict.fromkeys(_STREAMS, "streams"),
        **dict.fromkeys(_GRAPHS, "graphs"),
        **dict.fromkeys(_TENSORS, "_tensor_types"),
        **dict.fromkeys(_REST, "_rest"),
    },
)


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # one for each GPU, known once JAX has started
        return tuple([_default_of(gpu) for gpu in _gpus()])
    return _missing(name)


_end_at_callers(__name__)
