"""`torch.hann_window` and its like, which are periodic unless told otherwise, and `torch.range`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float

from ..._core.dtypes import bool as bool_dtype
from ..._core.dtypes import of
from ..._core.warn_once import warn
from .factory_tools import takes_out
from .from_arrays import finish, from_numpy, numpy_dtype


def _options(np_dtype: Any, layout: Any) -> str:
    """Write a tensor's options as C++ prints them."""
    dtype = "float (default)" if np_dtype is None else _c_name(np_dtype)
    kind = "Sparse" if "sparse" in str(layout) else "Strided (default)"
    return (
        f"TensorOptions(dtype={dtype}, device=cpu, layout={kind}, requires_grad=false (default), "
        "pinned_memory=false, memory_format=(nullopt))"
    )


def _c_name(np_dtype: Any) -> str:
    """Return a dtype as C++ prints it."""
    return {
        "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
        "int32": "int", "int64": "long int",
    }.get(str(np_dtype), str(np_dtype))  # fmt: skip


def _window(
    name: str, length: int, periodic: bool, dtype: Any, layout: Any, values: Callable[..., Any],
    requires_grad: bool, device: Any,
) -> Any:  # fmt: skip
    """Return a window of `length` points; a periodic one is the symmetric one of one more, cut."""
    np_dtype = None if dtype is None else numpy_dtype(dtype, name)
    length = length if isinstance(length, (int, float)) else operator.index(length)
    if layout is not None and "sparse" in str(layout):
        raise RuntimeError(
            f"{name} is not implemented for sparse types, got: {_options(np_dtype, layout)}"
        )
    if np_dtype is not None and np_dtype.kind in "biu":
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: {_options(np_dtype, layout)}"
        )
    if np_dtype is not None and np_dtype.kind == "c":
        kind = "ComplexFloat" if np_dtype.itemsize == 8 else "ComplexDouble"
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{kind}'")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length < 2:
        made = np.ones(length)
    else:
        last = length if periodic else length - 1
        made = values(np.arange(length, dtype=np.float64), last)
    out = from_numpy(np.asarray(made, np.float64)).to(of(np_dtype or default_float()))
    return finish(out, requires_grad, device)


def _cosines(*weights: float) -> Callable[..., Any]:
    def values(t: np.ndarray, last: int) -> Any:
        return sum((-1) ** k * w * np.cos(2 * np.pi * k * t / last) for k, w in enumerate(weights))

    return values


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a window of half a cosine wave from 0 to 1 and back."""
    rest = (dtype, layout, _cosines(0.5, 0.5), requires_grad, device)
    return _window("hann_window", window_length, periodic, *rest)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a window of `alpha - beta * cos(...)`."""
    rest = (dtype, layout, _cosines(alpha, beta), requires_grad, device)
    return _window("hamming_window", window_length, periodic, *rest)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a window of `0.42 - 0.5 * cos(...) + 0.08 * cos(2 ...)`."""
    rest = (dtype, layout, _cosines(0.42, 0.5, 0.08), requires_grad, device)
    return _window("blackman_window", window_length, periodic, *rest)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a triangle."""
    rest = (dtype, layout, lambda t, last: 1 - np.abs(2 * t / last - 1), requires_grad, device)
    return _window("bartlett_window", window_length, periodic, *rest)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the Kaiser window, steeper for larger `beta`."""

    def values(t: np.ndarray, last: int) -> Any:
        inside = np.maximum(1 - (2 * t / last - 1) ** 2, 0)
        return np.i0(beta * np.sqrt(inside)) / np.i0(beta)

    rest = (dtype, layout, values, requires_grad, device)
    return _window("kaiser_window", window_length, periodic, *rest)


@takes_out("count")
def range(
    start: Any, end: Any, step: Any = 1, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make numbers from `start` to `end`, both included; deprecated in favour of `arange`."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior "
        "is inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end)."
    )
    start, end, step = (x.item() if hasattr(x, "item") else x for x in (start, end, step))
    if dtype is bool_dtype:
        raise NotImplementedError("\"range_cpu\" not implemented for 'Bool'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_number(start)} -> {_number(end)}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    np_dtype = numpy_dtype(dtype, "range")
    if np_dtype.kind in "iu":
        start, end, step = int(start), int(end), int(step)
    made = start + step * np.arange(int((end - start) / step) + 1)
    return finish(from_numpy(made).to(of(np_dtype)), requires_grad, device)


def _number(x: Any) -> str:
    return f"{float(x):g}"
