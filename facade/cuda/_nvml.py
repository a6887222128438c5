"""Figures of NVIDIA's management library, by the package `nvidia-ml-py` where it is installed."""

from __future__ import annotations

from typing import Any

from .._core.jax_devices import list_gpus
from ._devices import find_gpu


def _library() -> Any:
    try:
        import pynvml  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported."
        ) from error
    return pynvml


def _of(device: Any) -> tuple[Any, Any]:
    """Return the library, and its handle of a GPU."""
    library = _library()
    gpu = find_gpu(device)
    library.nvmlInit()
    number = getattr(gpu, "local_hardware_id", None)
    number = list_gpus().index(gpu) if number is None else number
    return library, library.nvmlDeviceGetHandleByIndex(number)


def utilization(device: Any = None) -> int:
    """Return the percent of the last second in which a GPU computed."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def memory_usage(device: Any = None) -> int:
    """Return the percent of the last second in which a GPU's memory was read or written."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def device_memory_used(device: Any = None) -> int:
    """Return the bytes of a GPU that all processes together take."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetMemoryInfo(handle).used)


def temperature(device: Any = None) -> int:
    """Return the temperature of a GPU in degrees Celsius."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetTemperature(handle, 0))


def power_draw(device: Any = None) -> int:
    """Return the power that a GPU draws in milliwatts."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """Return the clock rate of a GPU's multiprocessors in MHz."""
    library, handle = _of(device)
    return int(library.nvmlDeviceGetClockInfo(handle, 1))


def list_gpu_processes(device: Any = None) -> str:
    """Return a text with the processes that use a GPU, and the memory that each takes."""
    try:
        library, handle = _of(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    found = library.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"GPU:{list_gpus().index(find_gpu(device))}"]
    for process in found:
        lines.append(
            f"process {process.pid:>10d} uses {process.usedGpuMemory / 2**20:>12.3f} MB GPU memory"
        )
    return "\n".join(lines if found else [*lines, "no processes are running"])
