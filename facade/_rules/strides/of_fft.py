"""Strides of transforms: the dims that were transformed lie innermost, in PyTorch's order."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous_strides

Strides = tuple[int, ...] | None
TRANSFORMS = frozenset({"_fft_c2c", "_fft_r2c", "_fft_c2r"})


def transformed(op: Any, call: Any, base: Layout, shape: tuple[int, ...]) -> Strides:
    """The strides of what one of `TRANSFORMS` makes, None if it is row-major.

    Source: `_exec_fft` in ATen/native/mkl/SpectralOps.cpp.

    Args:
      base: how the operand lies.
      shape: the result's.
    """
    given = dict(zip(op.parameters, call.args, strict=False)) | call.kwargs
    dims = tuple(d % len(shape) for d in given["dim"])
    if not dims:
        return None if base.strides == contiguous_strides(shape) else base.strides
    if op.name == "_fft_c2r":  # all dims but the last by a transform before it
        *first, last = dims
        if first:
            strides = _laid(base, _sorted(base, tuple(first)), base.shape)
            base = Layout(base.shape, strides)
        found = _laid(base, (last,), shape)
    else:
        # A transform of real numbers ends with the dim that the user named last.
        kept = dims[-1:] if op.name == "_fft_r2c" else ()
        found = _laid(base, _sorted(base, dims[: len(dims) - len(kept)]) + kept, shape)
    return None if found == contiguous_strides(shape) else found


def _sorted(base: Layout, dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(dims, key=lambda d: -base.strides[d]))


def _laid(base: Layout, dims: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of the dims that stay, in the order in which they lie, then of `dims`."""
    stay = tuple(d for d in range(len(shape)) if d not in dims)
    order = (*_sorted(base, stay), *dims)
    strides = [0] * len(shape)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)
