"""Sparse tensors in other shapes, and parts of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.ops.shape.dimensions import wrap_dim

from .make import coalesce, dense_cat, stack, to_dense
from .tensor import CompressedTensor, CooTensor, CscTensor, CsrTensor, refuse


def permute(x: Any, *dims: Any) -> Any:
    """Return the tensor with its dims in another order; sparse ones stay sparse."""
    order = [wrap_dim(d, x.dim()) for d in (dims[0] if len(dims) == 1 else dims)]
    coords = x._coo()
    count = coords.sparse_dim()
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError("sparse dims cannot change places with dense ones here")
    places = coords._places[order[:count]]
    values = coords._held
    if order[count:] != list(range(count, x.dim())):
        values = values.permute(0, *[d - count + 1 for d in order[count:]])
    return CooTensor.make(places, values, [x.shape[d] for d in order])


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """Return the tensor with two dims exchanged."""
    order = list(range(x.dim()))
    a, b = wrap_dim(dim0, x.dim()), wrap_dim(dim1, x.dim())
    order[a], order[b] = order[b], order[a]
    return permute(x, order)


def _t(x: Any) -> Any:
    return _transpose(x, 0, 1) if x.dim() == 2 else x


def _transpose(x: Any, dim0: int, dim1: int) -> Any:
    if isinstance(x, CompressedTensor) and wrap_dim(dim0, 2) != wrap_dim(dim1, 2):
        other = CscTensor if isinstance(x, CsrTensor) else CsrTensor
        return other.make(x._starts, x._across, x._held, tuple(x.shape)[::-1])
    return transpose(x, dim0, dim1)


def select(x: Any, dim: int, index: int) -> Any:
    """Return the part at an index of a dim: dense if no sparse dim is left."""
    dim, coords = wrap_dim(dim, x.dim()), x._coo()
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at "
            f"dimension {dim}"
        )
    index %= x.shape[dim]
    shape = [n for d, n in enumerate(x.shape) if d != dim]
    count = coords.sparse_dim()
    if dim >= count:
        values = coords._held.select(dim - count + 1, index)
        return CooTensor.make(coords._places, values, shape, coords._coalesced)
    there = (coords._places[dim] == index).nonzero().squeeze(1)
    values = coords._held.index_select(0, there)
    if count == 1:
        return values.sum(0)
    rest = [d for d in range(count) if d != dim]
    return CooTensor.make(
        coords._places[rest].index_select(1, there), values, shape, coords._coalesced
    )


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """Return the part of a dim from `start` on."""
    dim, coords = wrap_dim(dim, x.dim()), x._coo()
    shape = list(x.shape)
    shape[dim] = length
    if dim >= coords.sparse_dim():
        values = coords._held.narrow(dim - coords.sparse_dim() + 1, start, length)
        return CooTensor.make(coords._places, values, shape, coords._coalesced)
    row = coords._places[dim]
    there = ((row >= start) & (row < start + length)).nonzero().squeeze(1)
    places = coords._places.index_select(1, there).clone()
    places[dim] -= start
    return CooTensor.make(places, coords._held.index_select(0, there), shape, coords._coalesced)


def getitem(x: Any, index: Any) -> Any:
    """Return the part at ints and slices of step 1."""
    dim = 0
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, int):
            x = select(x, dim, i)
            continue
        if not isinstance(i, slice) or i.step not in (None, 1):
            refuse("index.Tensor")
        start, end, _ = i.indices(x.shape[dim])
        if (start, end) != (0, x.shape[dim]):
            x = narrow(x, dim, start, max(end - start, 0))
        dim += 1
    return x


def index_select(x: Any, dim: int, index: Any) -> Any:
    """Return the parts at indices of a dim."""
    dim, coords = wrap_dim(dim, x.dim()), x._coo()
    shape = list(x.shape)
    shape[dim] = index.shape[0]
    if dim >= coords.sparse_dim():
        values = coords._held.index_select(dim - coords.sparse_dim() + 1, index)
        return CooTensor.make(coords._places, values, shape, coords._coalesced)
    pairs = (coords._places[dim].unsqueeze(1) == index.unsqueeze(0)).nonzero()
    places = coords._places.index_select(1, pairs[:, 0]).clone()
    places[dim] = pairs[:, 1]
    made = CooTensor.make(places, coords._held.index_select(0, pairs[:, 0]), shape)
    return coalesce(made) if coords._coalesced else made


def unsqueeze(x: Any, dim: int) -> Any:
    """Return the tensor with a sparse dim of size 1 at a place."""
    coords = x._coo()
    dim = dim % (x.dim() + 1)
    count = coords.sparse_dim()
    shape = [*x.shape[:dim], 1, *x.shape[dim:]]
    if dim > count:
        values = coords._held.unsqueeze(dim - count + 1)
        return CooTensor.make(coords._places, values, shape, coords._coalesced)
    rows = list(coords._places.unbind(0))
    rows.insert(dim, coords._places.new_zeros(coords._nnz()))
    return CooTensor.make(stack(rows), coords._held, shape, coords._coalesced)


def cat(tensors: Any, dim: int = 0) -> Any:
    """Return sparse tensors one after the other along a dim."""
    parts = [t._coo() for t in tensors]
    dim = wrap_dim(dim, parts[0].dim())
    shape = list(parts[0].shape)
    shape[dim] = sum(t.shape[dim] for t in parts)
    moved, before = [], 0
    for t in parts:
        mine = t._places.clone()
        mine[dim] += before
        moved.append(mine)
        before += t.shape[dim]
    places, values = dense_cat(moved, 1), dense_cat([t._held for t in parts])
    done = dim == 0 and all(t._coalesced for t in parts)
    return CooTensor.make(places, values, shape, done)


def _stack(tensors: Any, dim: int = 0) -> Any:
    return cat([unsqueeze(t, dim) for t in tensors], dim)


def _reshape(x: Any, *shape: Any) -> Any:
    raise RuntimeError("reshape is not implemented for sparse tensors")


SHAPES: dict[str, Callable[..., Any]] = {
    "permute": permute, "transpose": _transpose, "t": _t, "select": select, "narrow": narrow,
    "__getitem__": getitem, "index_select": index_select, "unsqueeze": unsqueeze, "cat": cat,
    "concat": cat, "stack": _stack, "reshape": _reshape,
    "size": lambda x, dim=None: x.size(dim), "item": lambda x: to_dense(x).item(),
}  # fmt: skip
