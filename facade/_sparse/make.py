"""Sparse tensors made of indices and values, or of dense ones; and dense ones of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafax.functional.program.op import TABLE

from .._core.dtypes import Size, int64
from .._core.memory_format import sparse_coo, sparse_csc, sparse_csr
from .._ops.calls.functions import function
from .._ops.creation.factories import arange, zeros
from .._ops.creation.from_data import as_tensor
from .tensor import CompressedTensor, CooTensor, CscTensor, CsrTensor, SparseTensor

dense_cat, stack = function(TABLE["cat"]), function(TABLE["stack"])
searchsorted = function(TABLE["searchsorted"])


def coo(
    indices: Any, values: Any, size: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, is_coalesced: bool | None = None,
) -> CooTensor:  # fmt: skip
    """Make a tensor of coordinates and values; `sparse_coo_tensor`."""
    places = as_tensor(indices, device=device).to(int64)
    if places.dim() == 1 and places.numel() == 0:
        places = places.reshape(0 if size is None else len(size), 0)
    held = as_tensor(values, dtype=dtype, device=device)
    if places.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if held.dim() == 0 and places.shape[1] == 1:
        held = held.reshape(1)
    if places.shape[1] != held.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, "
            f"nnz from values: {held.shape[0]}"
        )
    if size is None:
        first = (places.max(1).values + 1).tolist() if places.shape[1] else [0] * places.shape[0]
        size = (*first, *held.shape[1:])
    size = tuple(int(n) for n in size)
    if len(size) != places.shape[0] + held.dim() - 1:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(size)}, sparse_dim = {places.shape[0]}, dense_dim = {held.dim() - 1}"
        )
    held = _as_leaf(held) if requires_grad else held
    return CooTensor.make(places, held, size, bool(is_coalesced))


def compressed(
    kind: Any, starts: Any, across: Any, values: Any, size: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Make a matrix by rows or columns; `sparse_csr_tensor`.

    Args:
      kind: `CsrTensor` or `CscTensor`.
    """
    firsts, places = as_tensor(starts, device=device), as_tensor(across, device=device)
    held = as_tensor(values, dtype=dtype, device=device)
    if firsts.dim() != 1 or places.dim() != 1:
        raise NotImplementedError("leafax has no batches of compressed sparse tensors")
    if places.shape[0] != held.shape[0]:
        raise RuntimeError(
            f"`{kind.names[1]}` and `values` must have the same number of elements, but got "
            f"{places.shape[0]} and {held.shape[0]}"
        )
    along = 0 if kind is CsrTensor else 1
    if size is None:
        other = int(places.max().item()) + 1 if places.numel() else 0
        size = (firsts.shape[0] - 1, other)[:: -1 if along else 1]
    if firsts.shape[0] != int(size[along]) + 1:
        what = "nrows" if kind is CsrTensor else "ncols"
        raise RuntimeError(
            f"{kind.names[0]}.shape[-1] must be equal to {what} + 1 = {int(size[along]) + 1}, but "
            f"got {firsts.shape[0]}"
        )
    held = _as_leaf(held) if requires_grad else held
    return kind.make(firsts, places, held, size)


def _as_leaf(values: Any) -> Any:
    return values if values.requires_grad else values.detach().clone().requires_grad_()


def with_coordinates(x: Any) -> CooTensor:
    """Return a matrix by rows or columns with coordinates."""
    starts = x._starts.to(int64)
    count = arange(x._nnz(), device=starts.device)
    along = searchsorted(starts, count, right=True) - 1
    across = x._across.to(int64)
    if isinstance(x, CscTensor):
        return CooTensor.make(stack([across, along]), x._held, x.shape)
    return CooTensor.make(stack([along, across]), x._held, x.shape, True)


def coalesce(x: CooTensor) -> CooTensor:
    """Return a tensor whose indices are sorted and differ; runs the program."""
    if x._coalesced:
        return x
    flat = flat_places(x)
    found, inverse = flat.unique(return_inverse=True)
    values = x._held
    held = zeros(found.shape[0], *values.shape[1:], dtype=values.dtype, device=values.device)
    held = held.index_add(0, inverse, values)
    return CooTensor.make(unflat(found, x.shape[: x.sparse_dim()]), held, x.shape, True)


def flat_places(x: CooTensor, dims: Iterable[int] | None = None) -> Any:
    """Return the indices of elements in a row of all places, or of those of some sparse dims."""
    flat: Any = x._places.new_zeros(x._places.shape[1])
    for d in range(x.sparse_dim()) if dims is None else dims:
        flat = flat * x.shape[d] + x._places[d]
    return flat


def unflat(flat: Any, shape: Any) -> Any:
    """Return coordinates of indices in a row of all places."""
    rows: list[Any] = []
    for n in reversed(shape):
        rows.append(flat % n)
        flat = flat.div(n, rounding_mode="floor")
    return stack(rows[::-1])


def to_dense(x: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """Return the dense tensor."""
    coords = x._coo()
    values = coords._held
    out = zeros(*coords.shape, dtype=values.dtype, device=values.device)
    if coords.sparse_dim():
        out = out.index_put(tuple(coords._places.unbind(0)), values, accumulate=True)
    else:
        out = out + values.sum(0)
    return out if dtype is None else out.to(dtype)


def to_sparse(x: Any, sparse_dim: Any = None, *, layout: Any = None, **options: Any) -> Any:
    """Return a tensor with coordinates for what is not zero; runs the program."""
    if layout is sparse_csr:
        return to_sparse_csr(x)
    if layout is sparse_csc:
        return to_sparse_csc(x)
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse(): leafax has no layout {layout}")
    if isinstance(x, SparseTensor):
        return x._coo()
    count = x.dim() if sparse_dim is None else int(sparse_dim)
    if not 0 < count <= x.dim():
        raise RuntimeError(
            f"sparse_dim must be in range [1, {x.dim()}], but got {count}"
            if x.dim()
            else "to_sparse of a tensor of no dims"
        )
    there = x.detach() != 0
    if count < x.dim():
        there = there.flatten(count).any(-1)
    places = there.nonzero().T.contiguous()
    return CooTensor.make(places, x[tuple(places.unbind(0))], x.shape, True)


def to_sparse_csr(x: Any, dense_dim: Any = None) -> Any:
    """Return a matrix by rows; runs the program."""
    return _compress(x, CsrTensor)


def to_sparse_csc(x: Any, dense_dim: Any = None) -> Any:
    """Return a matrix by columns; runs the program."""
    return _compress(x, CscTensor)


def _compress(x: Any, kind: Any) -> Any:
    if isinstance(x, kind):
        return x
    if x.dim() != 2:
        raise NotImplementedError("leafax has compressed sparse matrices, no batches of them")
    coords = to_sparse(x)._coo()
    size = tuple(x.shape)
    if kind is CscTensor:
        coords = CooTensor.make(coords._places.flip(0), coords._held, size[::-1])
    found = coalesce(coords)
    along = found._places[0].contiguous()
    count = size[0 if kind is CsrTensor else 1] + 1
    starts = searchsorted(along, arange(count, device=along.device))
    return kind.make(starts, found._places[1].contiguous(), found._held, size)


def empty(size: Any, dtype: Any = None, device: Any = None) -> CooTensor:
    """Return a tensor of zeros."""
    places = zeros(len(size), 0, dtype=int64, device=device)
    return CooTensor.make(places, zeros(0, dtype=dtype, device=device), Size(size), True)


def sparse_mask(x: Any, mask: Any) -> Any:
    """Return the elements of a dense tensor at the places of a sparse one."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask expected a sparse mask")
    coords = coalesce(mask._coo())
    dense = to_dense(x) if isinstance(x, SparseTensor) else x
    return coords._with(dense[tuple(coords._places.unbind(0))])


CompressedTensor._coo = with_coordinates  # type: ignore[method-assign, assignment]
