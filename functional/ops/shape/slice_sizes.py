"""Bounds and sizes of slices of a dim, with PyTorch's checks and words. No arrays here."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from .dimensions import Shape, wrap_dim


def slice_bounds(length: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """Start and number of elements of a Python slice of a dim of `length`."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    # By hand what `slice.indices` does: the length may be a symbol.
    start = 0 if start is None else _within(start, length)
    end = length if end is None else _within(end, length)
    return start, _greatest(0, -(-(end - start) // step))


def _within(place: int, length: int) -> int:
    """Count a place in a dim from the front, at most so far out as its ends."""
    return _least(_greatest(place + length if place < 0 else place, 0), length)


def _least(a: int, b: int) -> int:
    """Return the less of two lengths, of which one may be a symbol."""
    return min(a, b) if type(a) is type(b) is int else jax.core.min_dim(a, b)


def _greatest(a: int, b: int) -> int:
    return max(a, b) if type(a) is type(b) is int else jax.core.max_dim(a, b)


def narrow_start(shape: Shape, dim: int, start: int | None, length: int) -> int:
    """Start of `narrow`, counted from the front; `start=None` checks all else."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[wrap_dim(dim, len(shape))]
    if start is None:
        return 0
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start += size if start < 0 else 0
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return start


def select_index(shape: Shape, dim: int, index: int | None) -> int:
    """Index of `select`, counted from the front; `index=None` checks all else."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if index is None:
        return 0
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at "
            f"dimension {dim}"
        )
    return index + size if index < 0 else index


def split_sizes(shape: Shape, sizes: int | Sequence[int], dim: int) -> list[int]:
    """Return the lengths of the pieces of `split`."""
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size = shape[wrap_dim(dim, len(shape))]
    if isinstance(sizes, int):
        if sizes < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={sizes}"
            )
        if sizes == 0:
            if size:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    f"{size}"
                )
            return [0]
        return [min(sizes, size - i) for i in range(0, size, sizes)] or [0]
    if any(n < 0 for n in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    if sum(sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return list(sizes)


def chunk_sizes(shape: Shape, chunks: int, dim: int) -> list[int]:
    """Return the lengths of the pieces of `chunk`."""
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = shape[wrap_dim(dim, len(shape))]
    piece = -(-size // chunks)
    # An empty dim still gives as many chunks as asked for.
    return [0] * chunks if piece == 0 else split_sizes(shape, piece, dim)


def diagonal_dims(shape: Shape, offset: int, dim1: int, dim2: int) -> tuple[int, int, int]:
    """Return the two dims of `diagonal`, counted from the front, and its length."""
    given = f"{dim1}, {dim2}"
    dim1, dim2 = wrap_dim(dim1, len(shape)), wrap_dim(dim2, len(shape))
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {given}")
    rows, columns = shape[dim1], shape[dim2]
    length = _least(rows, columns - offset) if offset >= 0 else _least(rows + offset, columns)
    return dim1, dim2, _greatest(length, 0)


def unfold_windows(shape: Shape, dimension: int, size: int, step: int) -> tuple[int, int]:
    """Return the dim of `unfold`, counted from the front, and its number of windows."""
    dim = wrap_dim(dimension, len(shape))
    length = shape[dim] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return dim, (length - size) // step + 1
