"""Results whose size depends on the data: these run the program.

What they find is data, not history; `masked_select` goes on being differentiable through the
indices that it finds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leafax.functional.ops.shape.dimensions import broadcast_shapes
from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE, Op

from ..._autograd.forward_mode.no_forward_derivative import refuse_any_tangent
from ..._core.dtypes import float32, float64
from ..._core.handle import Handle
from ..._core.memory_format import contiguous_format
from ..._core.vmap_checks import differs_in_vmap, loop_over_examples, refuse_in_vmap
from ..._core.warn_once import drops_imaginary
from ..._dispatch.conj_neg_bits import held
from ..._dispatch.record import apply
from ..creation.from_arrays import from_numpy, from_numpy_beside
from ..indexing.masks import nonzero
from ..writes.write_out import write_out
from . import no_formula as formulaless

_BROADCAST = TABLE["broadcast_tensors"]


def _selected(input: jax.Array, mask: jax.Array, indices: Any) -> jax.Array:
    """Return what a mask selects, as `indices` say where it is True."""
    whole = _BROADCAST.fn((input, mask))[0]
    return whole.reshape(whole.shape or 1)[tuple(indices)]


_MASKED_SELECT = Op(
    _selected, name="masked_select", backward="MaskedSelectBackward0",
    saves={"self": "self", "mask": "self"},
)  # fmt: skip


def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:
    """Return the elements where `mask` is True, as a vector."""
    if str(mask.dtype) != "torch.bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    refuse_in_vmap("masked_select", mask)
    whole = mask.expand(broadcast_shapes(tuple(mask.shape), tuple(input.shape)))
    made = apply(
        _MASKED_SELECT, input, mask, nonzero(whole.reshape(whole.shape or 1), as_tuple=True)
    )
    return made if out is None else write_out(_MASKED_SELECT, made, out, (input, mask))


def argwhere(input: Any) -> Any:
    """Return the indices at which `input` is not zero, one row an element."""
    return nonzero(input)


_NONZERO_STATIC = Op(lambda x: x, name="nonzero_static", differentiable=False)


def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = None) -> Any:
    """Return the first `size` positions that are not zero, filled up with `fill_value`."""
    refuse_any_tangent("nonzero_static", input)
    if differs_in_vmap(input):
        return loop_over_examples(nonzero_static, input, size=size, fill_value=fill_value)
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = np.stack(np.nonzero(np.atleast_1d(held(input))), 1)[:, : input.dim()][:size]
    made = np.full((size, input.dim()), fill_value, np.int64)
    made[: len(found)] = found
    result = from_numpy_beside(input, made)
    return result if out is None else write_out(_NONZERO_STATIC, result, out)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each number from 0 up to the largest occurs, or sum their weights."""
    if differs_in_vmap(input, weights):
        counts = loop_over_examples(bincount, input, weights, minlength)
        return formulaless.of("bincount", counts, weights)
    x = held(input)
    if x.dtype.kind in "fcbV":
        kind = scalar_name(input._v.dtype)
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{kind}'")
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return from_numpy_beside(input, np.bincount(x, minlength=minlength).astype(np.int64))
    if tuple(weights.shape) != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = float32 if weights.dtype is float32 else float64
    values = held(weights)
    if values.dtype.kind == "c":
        drops_imaginary(values.dtype, dtype.np, values.size)
        values = values.real
    made = np.bincount(x, values, minlength=minlength)
    return formulaless.of("bincount", from_numpy_beside(input, made.astype(dtype.np)), weights)


_HISTC = Op(lambda x: x, name="histc", differentiable=False)


def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Any:
    """Count the elements that fall into each of `bins` equal parts of [min, max]."""
    if differs_in_vmap(input):
        return loop_over_examples(histc, input, bins, min, max)
    x = held(input)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    name = scalar_name(input._v.dtype)
    if min == max and x.size:
        if input.is_complex():
            raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{name}'")
        min, max = x.min(), x.max()
        if input.is_floating_point():  # PyTorch's search begins at the ends of what is finite
            ends = jnp.finfo(x.dtype)  # type: ignore[no-untyped-call]
            min, max = np.minimum(ends.max, min), np.maximum(ends.min, max)
    if not np.isfinite([float(min), float(max)]).all():
        raise RuntimeError(f"torch.histc: range of [{float(min):g}, {float(max):g}] is not finite")
    if min == max:
        min, max = min - 1, max + 1
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if not input.is_floating_point():
        kernel = "linspace_cpu" if input._v.dtype.kind == "b" else "histogram_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")
    counts, _ = np.histogram(x.astype(np.float64), bins, (float(min), float(max)))
    made = from_numpy_beside(input, counts.astype(x.dtype))
    return made if out is None else write_out(_HISTC, made, out)


def _repeat(input: Any, repeats: int, dim: int | None, output_size: int | None) -> Any:
    """Each element the same number of times: as in PyTorch a view of an expanded copy."""
    along = 0 if dim is None else dim
    if repeats < 0 or output_size is not None or not input.dim() and dim is not None:
        return apply(TABLE["repeat_interleave"], input, repeats, dim, output_size)
    input = input.flatten() if dim is None else input
    if not -input.dim() <= along < input.dim():
        return apply(TABLE["repeat_interleave"], input, repeats, dim)
    along %= input.dim()
    shape = list(input.shape)
    shape.insert(along + 1, repeats)
    out = input.unsqueeze(along + 1).expand(shape).clone(memory_format=contiguous_format)
    return out.flatten(along, along + 1)


def _check_size(wanted: int | None, index: Any) -> None:
    if wanted not in (None, index.size):
        raise RuntimeError("allocated size does not match required size")


def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Repeat elements: each the same number of times, or as often as a tensor says.

    A tensor of repeats decides the size, so that form runs the program.
    """
    if repeats is None:
        repeats, input = input, None
    if isinstance(repeats, (int, np.integer)):
        return _repeat(input, int(repeats), dim, output_size)
    if isinstance(repeats, (list, tuple)):
        counts = np.asarray(repeats, np.int64)
    else:
        counts = held(repeats)
    if counts.ndim > 1 and input is None:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype not in (np.dtype("int32"), np.dtype("int64")):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{scalar_name(counts.dtype)}'"
        )
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if input is None:
        index = np.repeat(np.arange(counts.size), counts)
        _check_size(output_size, index)
        made = index.astype(counts.dtype)
        return from_numpy_beside(repeats, made) if isinstance(repeats, Handle) else from_numpy(made)
    if dim is None:
        input, dim = input.flatten(), 0
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if not input.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size = input.shape[dim]
    if counts.size not in (1, size):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({dim}) = {size}"
        )
    index = np.repeat(np.arange(size), np.broadcast_to(counts.reshape(-1), (size,)))
    _check_size(output_size, index)
    return input.index_select(dim, from_numpy(index.astype(np.int64)))
