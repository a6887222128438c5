"""Max unpooling and `embedding_bag`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE

from ..._autograd.forward_mode.no_forward_derivative import missing_derivative_error
from ..._core.dtypes import int64, tensor_string
from ..._dispatch.record import apply
from ..._dispatch.tangents import has_tangent
from ..._ops.calls.functions import function
from ..._ops.creation.factories import arange, full, zeros
from ..._ops.creation.from_arrays import from_numpy
from .sparse import embedding

cat = function(TABLE["cat"])


def _tuple(x: Any, dims: int) -> tuple[int, ...]:
    return (int(x),) * dims if isinstance(x, int) else tuple(int(n) for n in x)


def _size(
    input: Any, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
    output_size: Any,
) -> tuple[int, ...]:  # fmt: skip
    """Return the spatial size before pooling: the smallest possible, or the one asked for."""
    dims = len(kernel)
    spatial = tuple(input.shape)[-dims:]
    default = [
        (n - 1) * s + k - 2 * p for n, s, k, p in zip(spatial, stride, kernel, padding, strict=True)
    ]
    if output_size is None:
        return tuple(default)
    size = output_size
    if len(size) == dims + 2:
        size = size[2:]
    if len(size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it "
            f"has a length of '{len(size)}'"
        )
    for n, d, s in zip(size, default, stride, strict=True):
        if not d - s < n < d + s:
            raise ValueError(
                f'invalid output_size "{size}" (dim {[*size].index(n)} must be between {d - s} and '
                f"{d + s})"
            )
    return tuple(int(n) for n in size)


def _max_unpool(dims: int) -> Callable[..., Any]:
    def unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Any:  # fmt: skip
        kernel = _tuple(kernel_size, dims)
        steps = kernel if stride is None else _tuple(stride, dims)
        size = _size(input, kernel, steps, _tuple(padding, dims), output_size)
        op = TABLE["nn.functional._max_unpool"]
        if dims == 1:  # PyTorch has kernels for images and volumes
            rows = (t.unsqueeze(-1) for t in (input, indices))
            return apply(op, *rows, (*size, 1)).squeeze(-1)
        return apply(op, input, indices, size)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{dims}d"
    unpool.__doc__ = "Put maxima back where `indices` say they came from; zeros elsewhere."
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)


def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sums, means or maxima of the rows of `weight` that bags of indices name.

    Args:
      input: bags of equal size `(bags, size)`, or all indices `(n,)` with where bags begin in
        `offsets`, which runs the program.
    """
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.dtype is int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a "
                f"mini-batch of fixed length sequences. However, found offsets of type "
                f"{type(offsets)}"
            )
        bags = arange(input.shape[0]).unsqueeze(1).expand(input.shape).reshape(-1)
        count = input.shape[0]
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        bags, count = bags_of(input.shape[0], offsets, include_last_offset)
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    _check_bags(input, weight, padding_idx)
    if has_tangent(weight) or per_sample_weights is not None and has_tangent(per_sample_weights):
        inference = not (has_tangent(weight) or weight.requires_grad)
        name = "_embedding_bag_forward_only" if inference else "_embedding_bag"
        raise missing_derivative_error(name)
    rows = embedding(
        input.reshape(-1), weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
    )
    rest = None
    if include_last_offset and input.dim() == 1:
        rest = _rest(input, weight, offsets, padding_idx)
    return _bag(
        input.reshape(-1), rows, weight, bags, count, mode, per_sample_weights, padding_idx, rest
    )


def _rest(input: Any, weight: Any, offsets: Any, padding_idx: int | None) -> Any:
    """Tell which indices lie behind the last offset, if those are left out.

    PyTorch's faster kernels for sums leave them out, but not their gradients, nor the numbers that
    they are of from means; its others count them to the last bag.
    """
    if padding_idx is not None or scalar_name(weight._v.dtype) == "Double":
        return None
    end = int(offsets.numpy()[-1])
    return arange(input.shape[0]) >= end if end < input.shape[0] else None


def bags_of(length: int, offsets: Any, include_last_offset: bool) -> tuple[Any, int]:
    """Return the bag of each of `length` indices, and how many bags there are; runs the program."""
    starts = np.asarray(offsets.numpy())
    _check_offsets(starts, length)
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    starts = starts[:-1] if include_last_offset else starts
    bags = np.searchsorted(starts, np.arange(length), "right") - 1
    return from_numpy(bags), len(starts)


def _check_offsets(starts: np.ndarray, length: int) -> None:
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}\n[ {tensor_string(starts.dtype)}{{}} ]"
        )
    if starts.size and starts[-1] > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of "
            f"{starts[-1]}"
        )


def _check_bags(input: Any, weight: Any, padding_idx: int | None) -> None:
    """Raise for dtypes that PyTorch's kernel does not have, and for a padding out of range."""
    for name, at, x, kinds in (
        ("indices", 1, input, ("Long", "Int")),
        ("weight", 1, weight, ("Half", "BFloat16", "Float", "Double")),
    ):
        if scalar_name(x._v.dtype) not in kinds:
            raise RuntimeError(
                f"Expected tensor for argument #{at} '{name}' to have one of the following scalar "
                f"types: {', '.join(kinds)}; but got {tensor_string(x._v.dtype)} instead (while "
                "checking arguments for embedding_bag)"
            )
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            "padding_idx must be within the number of embeddings, "
            f"-{rows} through {rows - 1}, but got {padding_idx}"
        )


def _bag(
    input: Any, rows: Any, weight: Any, bags: Any, count: int, mode: str, per_sample_weights: Any,
    padding_idx: int | None, rest: Any = None,
) -> Any:  # fmt: skip
    used = None
    if padding_idx is not None:
        used = input != padding_idx % weight.shape[0]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if mode == "max":
        nothing = zeros((1, rows.shape[1]), dtype=rows.dtype)
        return cat((rows, nothing)).gather(0, winners(rows.detach(), bags, count, used))
    if rest is not None:
        rows = rows.where(rest.logical_not().unsqueeze(1), rows - rows.detach())
    shape = (count, weight.shape[1])
    if used is not None:
        rows = rows.masked_fill(used.logical_not().unsqueeze(1), 0)
    out = zeros(shape, dtype=rows.dtype).index_add(0, bags, rows)
    if mode == "sum":
        return out
    ones = (input == input if used is None else used).to(rows.dtype)
    sizes = zeros(count, dtype=rows.dtype).index_add(0, bags, ones)
    return out / sizes.clamp(min=1).unsqueeze(1)


def winners(rows: Any, bags: Any, count: int, used: Any = None) -> Any:
    """Find the row that is the maximum of each bag and column, or the number of rows if none.

    A NaN is it where it comes first, and never behind another number: PyTorch asks of each
    further row whether it is greater.
    """
    n = rows.shape[0]
    index = bags.unsqueeze(1).expand(rows.shape)
    places = arange(n).unsqueeze(1).expand(rows.shape)
    ours = bags.unsqueeze(1) >= 0 if used is None else used.unsqueeze(1)

    def first(where: Any) -> Any:
        found = full((count, rows.shape[1]), n, dtype=int64)
        return found.scatter_reduce(0, index, places.masked_fill(where.logical_not(), n), "amin")

    leads = places == first(ours.expand(rows.shape)).gather(0, index)
    low = -float("inf")
    keys = rows.masked_fill(rows.isnan(), low).masked_fill(rows.isnan() & leads, -low)
    best = full((count, rows.shape[1]), low, dtype=rows.dtype)
    best = best.scatter_reduce(0, index, keys.masked_fill(ours.logical_not(), low), "amax")
    return first((keys == best.gather(0, index)) & ours)
