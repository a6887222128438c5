"""Switches that PyTorch programs set: threads, determinism, default device."""

from __future__ import annotations

import os
import warnings
from typing import Any

import jax
import numpy as np

from leafax.functional.program.meta import META
from leafax.functional.program.options import lowerings

from .._core.default_dtype import set_default_dtype
from .._core.dtypes import device as device_class
from .._core.jax_devices import chosen, jax_device, places
from .._core.python_data import name_of_type
from .._ops.creation import legacy_constructors
from .._ops.creation.fill_deterministic import deterministic
from .device_methods import device_of

_threads: list[int] = []


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """Return the number of threads on a CPU: XLA takes one for each core it may use."""
    return _threads[0] if _threads else _cores()


def _check_number(number: int) -> None:
    if not -(2**31) <= number < 2**31:
        wide = "" if -(2**63) <= number < 2**63 else " long"
        raise ValueError(f"Overflow when unpacking long{wide}")


def set_num_threads(number: int) -> None:
    """Accept a number for the sake of PyTorch programs, with a warning: XLA decides at its start.

    Raises:
      RuntimeError: not a positive integer.
    """
    if isinstance(number, np.integer):
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    _check_number(number)
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    if number != _cores():
        warnings.warn(
            "XLA computes on a CPU with one thread a core; to have fewer, limit the cores of the "
            "process before it starts (taskset). set_num_threads has no effect",
            UserWarning,
            stacklevel=2,
        )
    _threads[:] = [number]


get_num_interop_threads = get_num_threads


def set_num_interop_threads(number: int) -> None:
    """Accept a number without an effect, as `set_num_threads` does."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise RuntimeError(
            f"set_num_interop_threads expects an int, but got {type(number).__name__}"
        )
    _check_number(number)
    if number <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Demand that the same ops on the same numbers give the same bits each time, or stop it.

    What XLA compiles for CPUs and TPUs does (on GPUs XLA takes the flag
    `--xla_gpu_deterministic_ops` before it starts), but a program that is met for the first time
    may run op by op, and its numbers differ by rounding from those of later runs. So with `mode`
    programs are compiled when they are first met, where anything is rounded.

    >>> import leafax as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> x = torch.linspace(0, 1, 5)
    >>> first, again = ((x * 3 + 1).exp().tolist() for _ in range(2))
    >>> first == again
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name} must be bool, not "
                f"{name_of_type(value)}"
            )
    deterministic[:] = [mode, warn_only]
    lowerings(op_by_op="exact" if mode else "auto")


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told."""
    return deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told of `warn_only`."""
    return deterministic[1]


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call `use_deterministic_algorithms` by number or name.

    The modes are 0 "default", 1 "warn" and 2 "error".
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2, as `set_deterministic_debug_mode` numbers them."""
    return 0 if not deterministic[0] else 1 if deterministic[1] else 2


def set_flush_denormal(mode: bool) -> bool:
    """Tell whether small numbers can be flushed to zero by request: XLA offers no such switch."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by the class of tensors of it, or by its name; deprecated."""
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    if not isinstance(t, (str, type)):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    name = t.rpartition(".")[2] if isinstance(t, str) else t.__name__
    set_default_dtype(getattr(legacy_constructors, name)().dtype)


def get_default_device() -> device_class:
    """Return the device that new tensors are made on."""
    return device_of(None) if chosen.where is None else chosen.where


def set_default_device(device: Any) -> None:
    """Make new tensors on this device; None is JAX's own choice.

    It sets JAX's `jax_default_device`, so arrays of JAX are made there, too; but for `meta`, which
    JAX has not.
    """
    where = None if device is None else device_class(device)
    found = None if where is None else jax_device(where)
    chosen.where = where if found is META else None
    places.asked = None if found is META else found
    jax.config.update("jax_default_device", None if found is META else found)
