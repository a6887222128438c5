"""Shapes of pooling windows, with PyTorch's checks and words. No arrays here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...program.dtypes import is_complex, is_floating, scalar_name
from .checks import ints, size_list

Ints = int | Sequence[int]
_COUNTS = {2: "two", 3: "three"}


class Windows(NamedTuple):
    """Windows over the last dims: one number a dim in each field."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    out: tuple[int, ...]


def _out_size(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    out = (span + (s - 1 if ceil_mode else 0)) // s + 1
    # The last window must start inside the input or its left padding.
    return out - 1 if ceil_mode and (out - 1) * s >= size + p else out


def _named(values: Sequence[int], prefix: str, joint: str = ": ") -> str:
    return " ".join(
        f"{prefix}{axis}{joint}{v}" for axis, v in zip("THW"[-len(values) :], values, strict=True)
    )


def _check_numbers(
    kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> None:  # fmt: skip
    """Run the checks of the pooling kernels of 2 and 3 dims."""
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got {_named(kernel, 'k')}"
        )
    if min(stride) < 0:
        raise RuntimeError(f"stride should be greater than zero, but got {_named(stride, 'd')}")
    if min(dilation) <= 0:
        raise RuntimeError(
            f"dilation should be greater than zero, but got {_named(dilation, 'dilation')}"
        )
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _check_out(shape: tuple[int, ...], out: tuple[int, ...]) -> None:
    if any(n < 1 for n in out):  # of lengths that are symbols none is known to be the least
        before = "x".join(str(n) for n in shape[-len(out) - 1 :])
        after = "x".join(str(n) for n in (shape[-len(out) - 1], *out))
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({after}). Output size is "
            "too small"
        )


def _check_input(name: str, dims: int, shape: tuple[int, ...], strict: bool) -> None:
    """Check the rank, and that no dim has size 0 that may not."""
    plain, batched = dims + 1, dims + 2
    if len(shape) not in (plain, batched) and strict:
        raise RuntimeError(
            f"non-empty {plain}D or {batched}D (batch mode) tensor expected for input"
        )
    inner = shape[1:] if len(shape) == batched else shape
    if len(shape) in (plain, batched) and 0 not in inner:
        return
    if dims < 3:
        raise RuntimeError(
            f"Expected {plain}D or {batched}D (batch mode) tensor with optional 0 dim batch size "
            f"for input, but got:{size_list(shape)}"
        )
    raise RuntimeError(
        f"{name}(): Expected input's non-batch dimensions to have positive length, but input has "
        f"a shape of {size_list(shape)} and non-batch dimension {inner.index(0)} has length zero!"
    )


def _windows(
    shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], dilation: tuple[int, ...], ceil_mode: bool,
) -> Windows:  # fmt: skip
    rows = zip(shape[-len(kernel) :], kernel, stride, padding, dilation, strict=True)
    out = tuple(_out_size(*row, ceil_mode) for row in rows)
    return Windows(kernel, stride, padding, dilation, out)


def _count(value: Any) -> int:
    return 1 if isinstance(value, (int, np.integer)) else len(value)


def _check_indexed1(shape: tuple[int, ...]) -> None:
    """Run the checks with indices: of the kernel of two dims, the first of size 1."""
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument "
            "#1 'self' (while checking arguments for max_pool1d)"
        )
    if 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{size_list((*shape[:-1], 1, shape[-1]))}"
        )


def _max_windows1(
    input: Any, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
    ceil_mode: bool,
) -> Windows:  # fmt: skip
    shape = input.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{size_list(shape)}"
        )
    values = []
    for name, value, text in (
        ("kernel_size", kernel_size, "an int, list of ints or tuple of ints"),
        ("stride", kernel_size if stride is None else stride,
         "None, an int, list of ints, or tuple of ints"),
        ("padding", padding, "an int, list of ints, or tuple of ints"),
        ("dilation", dilation, "an int, list of ints or tuple of ints"),
    ):  # fmt: skip
        message = f"max_pool1d() {name} must be {text} of size 1 but got size {_count(value)}"
        values.append(ints(value, 1, message))
    for name, index in (("kernel_size", 0), ("stride", 1), ("padding", 2), ("dilation", 3)):
        v = values[index][0]
        if name == "padding" and v < 0:
            raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {v}")
        if name == "padding" and v > values[0][0] // 2:
            raise RuntimeError(
                "max_pool1d() padding should be at most half of kernel size, but got "
                f"padding={v} and kernel_size={values[0][0]}"
            )
        if name != "padding" and v <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {v}")
    w = _windows(shape, values[0], values[1], values[2], values[3], ceil_mode)
    if w.out[0] < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {w.out[0]}")
    return w


def max_windows(
    dims: int, input: Any, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
    ceil_mode: bool, indexed: bool = False,
) -> Windows:  # fmt: skip
    """Return the windows of `max_pool{dims}d`; `indexed` ones are PyTorch's other kernels."""
    if stride is not None and not isinstance(stride, (int, np.integer)) and not len(stride):
        stride = None
    if dims == 1 and indexed:
        _check_indexed1(input.shape)
        kernel, steps, pads, gaps = (
            ints(v, 1, f"max_pool1d() argument '{name}' should contain one int (got {_count(v)})")
            for name, v in (("kernel_size", kernel_size),
                            ("stride", kernel_size if stride is None else stride),
                            ("padding", padding), ("dilation", dilation))
        )  # fmt: skip
        _check_numbers((1, *kernel), (1, *steps), (0, *pads), (1, *gaps))
        if pads[0] > kernel[0] // 2:
            raise RuntimeError(
                "pad should be smaller than or equal to half of kernel size, but got padW = "
                f"{pads[0]}, padH = 0, kW = {kernel[0]}, kH = 1"
            )
        w = _windows(input.shape, kernel, steps, pads, gaps, ceil_mode)
        _check_out((*input.shape[:-1], 1, input.shape[-1]), (1, *w.out))
        _need_order("max_pool2d", input)
        return w
    if dims == 1:
        w = _max_windows1(input, kernel_size, stride, padding, dilation, ceil_mode)
        if not is_floating(input.dtype):
            raise NotImplementedError(
                f"\"max_pool1d_impl\" not implemented for '{scalar_name(input.dtype)}'"
            )
        return w
    name = f"max_pool{dims}d"
    either = f"a single int, or a tuple of {_COUNTS[dims]} ints"
    kernel = ints(kernel_size, dims, f"{name}: kernel_size must either be {either}")
    steps = kernel if stride is None else ints(
        stride, dims, f"{name}: stride must either be omitted, {either}"
    )  # fmt: skip
    pads = ints(padding, dims, f"{name}: padding must either be {either}")
    gaps = ints(dilation, dims, f"{name}: dilation must be either {either}")
    if len(input.shape) not in (dims + 1, dims + 2):
        _check_input(name, dims, input.shape, True)
    _check_numbers(kernel, steps, pads, gaps)
    _check_input("max_pool3d_with_indices_out_cpu_template", dims, input.shape, True)
    w = _windows(input.shape, kernel, steps, pads, gaps, ceil_mode)
    _check_out(input.shape, w.out)
    _need_order(name, input)
    return w


def _need_order(name: str, input: Any) -> None:
    """Raise for dtypes that the kernels of maxima do not have."""
    if input.dtype == np.dtype(bool) or is_complex(input.dtype):
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(input.dtype)}'")


def avg_windows(
    dims: int, input: Any, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool
) -> Windows:
    """Return the windows of `avg_pool{dims}d`."""
    if stride is not None and not isinstance(stride, (int, np.integer)) and not len(stride):
        stride = None
    name, shape = f"avg_pool{dims}d", input.shape
    if dims == 1:
        if len(shape) not in (2, 3):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for "
                "argument #1 'self' (while checking arguments for avg_pool1d)"
            )
        texts = [_one_int("kernel_size", kernel_size), _one_int("stride", stride)]
        texts.append(_one_int("padding", padding))
    else:
        must = "must either be" if dims == 2 else "must be"
        either = f"a single int, or a tuple of {_COUNTS[dims]} ints"
        texts = [
            f"{name}: kernel_size {must} {either}", f"{name}: stride {must} omitted, {either}",
            f"{name}: padding {must} {either}",
        ]  # fmt: skip
    kernel = ints(kernel_size, dims, texts[0])
    steps = kernel if stride is None else ints(stride, dims, texts[1])
    pads = ints(padding, dims, texts[2])
    if dims == 2 and len(shape) < 3:
        low = max(len(shape), 1)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got -3)"
        )
    if dims == 3 and len(shape) not in (4, 5):
        _check_input(name, dims, shape, True)
    # One dim runs as two, the first of size 1.
    one, zero = ((1,), (0,)) if dims == 1 else ((), ())
    _check_numbers(one + kernel, one + steps, zero + pads, one + (1,) * dims)
    if dims == 1:
        _check_input(name, 2, (*shape[:-1], 1, shape[-1]), False)
    else:
        _check_input(name, dims, shape, dims == 3)
    w = _windows(shape, kernel, steps, pads, (1,) * dims, ceil_mode)
    if dims == 3 and any(n < 1 for n in w.out):
        sizes = _named(shape[-3:], "")
        raise RuntimeError(
            f"input image ({sizes}) smaller than kernel size ({_named(kernel, 'k')})"
        )
    _check_out((*shape[:-dims], *one, *shape[-dims:]), one + w.out)
    return w


def _one_int(name: str, value: Any) -> str:
    count = 1 if value is None or isinstance(value, (int, np.integer)) else len(value)
    return f"avg_pool1d() argument '{name}' should contain one int (got {count})"
