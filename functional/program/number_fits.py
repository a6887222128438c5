"""Python numbers that a dtype cannot hold."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .op import Op

C_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def fits_int64(number: int) -> bool:
    """Return True if a Python int fits in 64 bits with its sign."""
    return -(1 << 63) <= number < 1 << 63


def need_int64(number: int) -> None:
    """Raise what PyTorch says of an int that must have 64 bits with its sign, and has more."""
    if not fits_int64(number):
        raise ValueError("Overflow when unpacking long long")


def check_fits(value: Any, dtype: Any) -> None:
    """Raise PyTorch's error for a Python number that the dtype cannot hold."""
    dtype = np.dtype(dtype)
    if type(value) not in (int, float, complex) or dtype == np.dtype(bool):
        return
    real = np.dtype(dtype).name.replace("complex64", "float32").replace("complex128", "float64")
    parts = (value.real, value.imag)
    if dtype.kind in "iu":
        top = float(np.iinfo(dtype).max)
        low = float(np.iinfo(dtype).min)
        if dtype.kind == "u" and type(value) is int:
            low = -top  # negative integers become unsigned ones
        bad = not low <= value.real <= top or value.imag
        bad = bad or (type(value) is int and value > np.iinfo(dtype).max)
    else:
        top = float(jnp.finfo(real).max)  # type: ignore[no-untyped-call]
        bad = any(math.isfinite(x) and abs(x) > top for x in parts)
        bad = bad or (dtype.kind != "c" and value.imag)
    if bad:
        name = C_NAMES.get(dtype.name, dtype.name)
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def check_numbers(op: Op, args: Any, kwargs: Any, dtype: Any) -> None:
    """Raise if a Python number among the arguments is too large for results of this dtype.

    The op's column `fits` tells which are asked.
    """
    integral = np.dtype(dtype).kind in "iu"
    narrow = integral or np.dtype(dtype).itemsize == 2  # as the halves are
    for name, of in op.fits.items():
        if of == "any" or integral or (of == "narrow" and narrow):
            place = op.parameters.index(name)
            check_fits(args[place] if place < len(args) else kwargs.get(name), dtype)
