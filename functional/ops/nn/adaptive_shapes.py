"""Output sizes of adaptive pooling, with PyTorch's checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...program.dtypes import is_floating, scalar_name
from .checks import ints, size_list


def all_ones(dims: int, output_size: Any) -> bool:
    """Return True if an output size asks for one window."""
    if isinstance(output_size, (list, tuple)):
        return len(output_size) == dims and all(n == 1 for n in output_size)
    return isinstance(output_size, (int, np.integer)) and output_size == 1


def adaptive_sizes(kind: str, dims: int, input: Any, output_size: Any) -> tuple[int, ...]:
    """Return the spatial output sizes of `adaptive_{kind}_pool{dims}d`; None keeps the input's."""
    shape, name = input.shape, f"adaptive_{kind}_pool{dims}d"
    colon = ":" if kind == "max" else ""
    single = isinstance(output_size, (int, np.integer))
    if dims == 1:
        if len(shape) not in (2, 3):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for "
                f"argument #1 'self' (while checking arguments for {name})"
            )
        count = 1 if single else len(output_size)
        out = ints(
            output_size, 1, f"{name}() argument 'output_size' should contain one int (got {count})"
        )
    else:
        odd = f"{name}: output_size must be {dims}"
        if kind == "max":
            odd = f"{name}(): internal error: output_size.size() must be {dims}"
        if single or output_size is None:
            output_size = (output_size,) * dims
        elif len(shape) <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        if len(output_size) != dims:
            raise RuntimeError(odd)
        keep = shape[-dims:] if len(shape) >= dims else (0,) * dims
        out = tuple(int(n) if v is None else int(v) for v, n in zip(output_size, keep, strict=True))
    if kind == "avg" and min(out) < 0:
        _negative_avg(dims, out)
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} "
            f"{size_list(shape)}"
        )
    shown, low = (shape, name) if dims > 1 or kind == "max" else (
        (*shape[:-1], 1, shape[-1]), "adaptive_avg_pool2d"
    )  # fmt: skip
    first = len(shown) - (dims if shown is shape else 2) - (1 if kind == "max" else 0)
    first = max(first, 1 if len(shape) == dims + 2 else 0)
    for i in range(first, len(shown)):
        if shown[i] == 0:
            raise RuntimeError(
                f"{low}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {size_list(shown)} with dimension {i} being empty"
            )
    if min(out) < 0:
        sizes = size_list((*shape[:-dims], *((1,) if dims == 1 else ()), *out))
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(out)}: {sizes}")
    if not is_floating(input.dtype) and 0 not in out:
        kernel = f"adaptive_{kind}_pool" + ("3d_cpu" if dims == 3 else "2d")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")
    return out


def _negative_avg(dims: int, out: tuple[int, ...]) -> None:
    shown = (1, *out) if dims == 1 else out
    text = ", ".join(str(n) for n in shown)
    if dims == 3:
        text = f"{out[0]}, {out[1]},{out[2]}"
    raise RuntimeError(
        f"adaptive_avg_pool{max(dims, 2)}d: elements of output_size must be greater than or equal "
        f"to 0 but received {{{text}}}"
    )
