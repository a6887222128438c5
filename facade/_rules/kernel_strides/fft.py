"""Strides of transforms: the dims that were transformed lie innermost, in PyTorch's order."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous_strides

from ..strides.layouts import Strides, laid
from ..strides.of_results import ALWAYS


def transform_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...]:
    """Lay out the result of a transform.

    Source: `_exec_fft` in ATen/native/mkl/SpectralOps.cpp.
    """
    return (_transformed(call.op, call, laid(inputs[0]), tuple(avals[0].shape)),)


ALWAYS |= dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), transform_strides)


def _transformed(op: Any, call: Any, base: Layout, shape: tuple[int, ...]) -> Strides:
    """Find the strides of a result of this shape, None if it is row-major.

    Args:
      base: how the operand lies.
    """
    dims = tuple(d % len(shape) for d in call.arguments["dim"])
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
    """Lay out row by row the dims that stay, in the order in which they lie, then `dims`."""
    stay = tuple(d for d in range(len(shape)) if d not in dims)
    order = (*_sorted(base, stay), *dims)
    strides = [0] * len(shape)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)
