"""View ops that take a dim apart: unbind, split and chunk."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from ...program.op import Decorator, ops_with
from . import dimensions, slice_sizes
from .slices import slice_

Array = jax.Array


op: Decorator = ops_with(moves=True)


# Several results -----------------------------------------------------------------------------
# No `write`: which of the results was written to is for the caller to say; each is a `narrow`
# or `select` of the base.


@op(view=True)
def unbind(input: Array, dim: int = 0) -> tuple[Array, ...]:
    """Take every index of a dim."""
    if not input.ndim and dim in (-1, 0):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    # One equation for all: slices took as many, and their gradients the square of it.
    return tuple(jnp.unstack(input, axis=dimensions.wrap_dim(dim, input.ndim)))


def _pieces(input: Array, sizes: Sequence[int], dim: int) -> tuple[Array, ...]:
    return tuple(lax.split(input, sizes, axis=dim % input.ndim))


@op(view=True, sizes=("split_size_or_sections",))
def split(
    input: Array, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Array, ...]:
    """Cut a dim into pieces of one length (the last may be shorter), or of the lengths given."""
    return _pieces(input, slice_sizes.split_sizes(input.shape, split_size_or_sections, dim), dim)


@op(view=True, sizes=("split_sizes",))
def split_with_sizes(input: Array, split_sizes: Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Cut a dim into pieces of the lengths given."""
    return _pieces(input, slice_sizes.split_sizes(input.shape, split_sizes, dim), dim)


@op(view=True, backward="SplitBackward0")
def chunk(input: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Cut a dim into at most `chunks` pieces of one length, the last may be shorter."""
    return _pieces(input, slice_sizes.chunk_sizes(input.shape, chunks, dim), dim)


@op(backward="UnsafeSplitBackward0", sizes=("split_size",))
def unsafe_split(input: Array, split_size: int, dim: int = 0) -> tuple[Array, ...]:
    """Cut a dim into pieces of one length that share no storage as far as autograd knows."""
    return _pieces(input, slice_sizes.split_sizes(input.shape, split_size, dim), dim)


@op(backward="UnsafeSplitWithSizesBackward0", sizes=("split_sizes",))
def unsafe_split_with_sizes(
    input: Array, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Array, ...]:
    """Cut a dim into pieces of the lengths given, which share no storage."""
    return _pieces(input, slice_sizes.split_sizes(input.shape, split_sizes, dim), dim)


@op(backward="UnsafeSplitBackward0")
def unsafe_chunk(input: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Cut a dim into at most `chunks` pieces, which share no storage."""
    return _pieces(input, slice_sizes.chunk_sizes(input.shape, chunks, dim), dim)


@op(view=True, backward="SliceBackward0")
def tensor_split(
    input: Array, indices_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Array, ...]:
    """Cut a dim into exactly so many pieces, or before the indices given."""
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    size = input.shape[dimensions.wrap_dim(dim, input.ndim)]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        long, rest = divmod(size, sections)
        sizes = [long + (i < rest) for i in range(sections)]
        return _pieces(input, sizes, dim)
    cuts = [None, *indices_or_sections, None]
    return tuple(slice_(input, dim, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
