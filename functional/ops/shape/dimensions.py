"""Arithmetic on shapes and dims, with PyTorch's checks and words. No arrays here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax

Shape = tuple[int, ...]


def wrap_dim(dim: int, ndim: int) -> int:
    """Count `dim` from the front; 0-dim tensors have one dim for this purpose."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {dim})"
        )
    return dim % bound


def wrap_dims(dims: int | Sequence[int], ndim: int) -> Shape:
    """Count distinct dims from the front, in the order given."""
    dims = (dims,) if isinstance(dims, int) else dims
    wrapped: list[int] = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return tuple(wrapped)


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """Return the shape that two shapes broadcast to."""
    ndim = max(len(a), len(b))
    long_a, long_b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    # PyTorch looks from the last dim and names the first clash.
    for dim in reversed(range(ndim)):
        if long_a[dim] != long_b[dim] and 1 not in (long_a[dim], long_b[dim]):
            raise RuntimeError(
                f"The size of tensor a ({long_a[dim]}) must match the size of tensor b "
                f"({long_b[dim]}) at non-singleton dimension {dim}"
            )
    return tuple(y if x == 1 else x for x, y in zip(long_a, long_b, strict=True))


def infer_size(size: Sequence[int], numel: int) -> Shape:
    """Resolve the -1 of `size` for a tensor of `numel` elements."""
    text, inferred, known = str(list(size)), None, 1
    for dim, length in enumerate(size):
        if length == -1:
            if inferred is not None:
                raise RuntimeError("only one dimension can be inferred")
            inferred = dim
        elif length < 0:
            raise RuntimeError(f"invalid shape dimension {length} at index {dim} of shape {text}")
        else:
            known *= length
    if numel != known and (inferred is None or known == 0 or numel % known):
        raise RuntimeError(f"shape '{text}' is invalid for input of size {numel}")
    if inferred is None:
        return tuple(size)
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {text} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    return tuple(numel // known if dim == inferred else n for dim, n in enumerate(size))


def flatten_size(shape: Shape, start_dim: int, end_dim: int) -> Shape:
    """Return the shape that `flatten` gives."""
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return (1,)
    return shape[:start] + (math.prod(shape[start : end + 1]),) + shape[end + 1 :]


def unflatten_size(shape: Shape, dim: int, sizes: Sequence[int]) -> Shape:
    """Return the shape that `unflatten` gives."""
    dim = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no "
            "dimensions"
        )
    try:
        inner = infer_size(sizes, shape[dim])
    except RuntimeError as error:
        if "is invalid for input of size" not in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
            f"{dim} ({shape[dim]}) in the input tensor"
        ) from None
    return shape[:dim] + inner + shape[dim + 1 :]


def squeezed_dims(shape: Shape, dim: int | Sequence[int] | None) -> Shape:
    """Return the dims that `squeeze` drops."""
    dims = range(len(shape)) if dim is None else wrap_dims(dim, len(shape))
    return tuple(d for d in dims if shape and shape[d] == 1)


def expand_size(shape: Shape, size: Sequence[int], dtype_name: str = "Float") -> Shape:
    """Return the shape that `expand` gives, -1 resolved."""
    lead = len(size) - len(shape)
    if lead < 0:
        young = dtype_name.startswith(("Complex", "BFloat16", "Bool", "UInt"))
        kind = f"CPU{dtype_name}Type" if young else f"torch.{dtype_name}Tensor"
        raise RuntimeError(
            f"expand({kind}{{{list(shape)}}}, size={list(size)}): the number of "
            f"sizes provided ({len(size)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(shape)})"
        )
    out = []
    for dim, want in reversed(list(enumerate(size))):
        if dim < lead and want == -1:
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) isn't allowed in a leading, "
                f"non-existing dimension {dim}"
            )
        have = shape[dim - lead] if dim >= lead else want
        want = have if want == -1 else want
        if have != want and (have != 1 or want < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) "
                f"at non-singleton dimension {dim}.  Target sizes: {list(size)}.  "
                f"Tensor sizes: {list(shape)}"
            )
        out.append(want)
    known = [n for n in out if type(n) is int]  # all, but where lengths are symbols
    if any(n < 0 for n in known) or math.prod(known) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    return tuple(reversed(out))


def permute_order(dims: Sequence[int], ndim: int) -> Shape:
    """Order of `permute`, checked."""
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            "length of the desired ordering of dimensions i.e. input.dim() = "
            f"{ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = tuple(wrap_dim(dim, ndim) for dim in dims)
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return order


def transpose_order(dim0: int, dim1: int, ndim: int) -> Shape:
    """Order of dims that swaps two of them."""
    dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return tuple(order)


def movedim_order(
    source: int | Sequence[int], destination: int | Sequence[int], ndim: int
) -> Shape:
    """Order of dims of `movedim`."""
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({source} dims) should contain "
            f"the same number of dims as destination ({destination} dims)"
        )
    wrapped_source = [wrap_dim(dim, ndim) for dim in source]
    wrapped_destination = [wrap_dim(dim, ndim) for dim in destination]
    for name, given, wrapped in (
        ("source", source, wrapped_source),
        ("destination", destination, wrapped_destination),
    ):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
    if not ndim:
        return ()
    order = [dim for dim in range(ndim) if dim not in wrapped_source]
    for target, dim in sorted(zip(wrapped_destination, wrapped_source, strict=True)):
        order.insert(target, dim)
    return tuple(order)


def matrix_order(ndim: int, attribute: str) -> Shape:
    """Order that swaps the last two dims, for `mT` and its like; 0-dim passes through."""
    if ndim == 1:
        raise RuntimeError(
            f"tensor.{attribute} is only supported on matrices or batches of matrices. "
            "Got 1-D tensor."
        )
    return transpose_order(-2, -1, ndim) if ndim else ()


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
