"""Arithmetic on shapes and dims, with PyTorch's checks and words. No arrays here."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
