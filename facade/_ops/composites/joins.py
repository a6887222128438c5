"""Functions of several tensors that PyTorch makes of views: each view has its node in the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..calls.functions import by_name, function
from ..creation.from_arrays import from_numpy
from .shapes import atleast_1d, atleast_2d, atleast_3d, need_tensors


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Expand each tensor to the shape that all have in common; the results are views.

    >>> import leafax
    >>> x, y = leafax.broadcast_tensors(leafax.ones(2, 1), leafax.ones(3))
    >>> x.shape, y.shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    need_tensors(tensors)
    shapes = [tuple(out.shape) for out in _abstract("broadcast_tensors", tensors)]
    return tuple(
        x if tuple(x.shape) == shape else x.expand(shape)
        for x, shape in zip(tensors, shapes, strict=True)
    )


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Expand vectors to coordinates on their grid; the results are views.

    Args:
      indexing: "ij" for matrix order; "xy" swaps the first two dims.
    """
    tensors = _packed(tensors)
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument."
        )
        indexing = "ij"
    if not isinstance(indexing, str):
        name = type(indexing).__name__
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {name}")
    _abstract("meshgrid", tensors, indexing)
    return _grid(tensors, swapped=indexing == "xy" and len(tensors) > 1)


def _grid(tensors: Sequence[Any], swapped: bool = False) -> tuple[Any, ...]:
    """View vectors as coordinates, with the first two dims swapped or not."""
    places = list(range(len(tensors)))
    if swapped:
        places[:2] = 1, 0
    shape, ones = tuple(tensors[i].numel() for i in places), (1,) * len(places)
    return tuple(
        x.view((*ones[:i], -1, *ones[i + 1 :])).expand(shape)
        for i, x in zip(places, tensors, strict=True)
    )


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of the elements of vectors, one a row."""
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    need_tensors(tensors)
    for t in tensors:
        _need_vector(t)
    if len(tensors) == 1:
        return tensors[0]
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    return apply(TABLE["stack"], tuple([x.flatten() for x in _grid(tensors)]), 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return all choices of `r` elements of a vector, one a row.

    >>> import leafax
    >>> leafax.combinations(leafax.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _need_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    coordinates = np.indices((input.shape[0],) * r, sparse=True)
    orders = (a <= b if with_replacement else a < b for a, b in pairwise(coordinates))
    chosen = np.ones((input.shape[0],) * r, bool)
    for order in orders:
        chosen &= order
    mask = from_numpy(chosen)
    return apply(TABLE["stack"], tuple([x.masked_select(mask) for x in _grid([input] * r)]), 1)


def _need_vector(x: Any) -> None:
    if x.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")


def _packed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    need_tensors(tensors)
    return tensors


def _abstract(name: str, tensors: Any, *rest: Any) -> Any:
    """Return the results' shapes; raises what the table's op refuses."""
    return _evaluated(name, tuple((tuple(x.shape), x._v.dtype) for x in tensors), rest)


@functools.lru_cache(maxsize=1024)  # a loop asks the same each time
def _evaluated(name: str, inputs: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
    avals = [jax.ShapeDtypeStruct(*x) for x in inputs]
    with jax.enable_x64(True):
        return jax.eval_shape(lambda *xs: TABLE[name].fn(xs, *rest), *avals)


def _stack(name: str, prepare: Callable[..., Any], dim: Callable[[Any], int]) -> Callable[..., Any]:
    whole = function(TABLE[name])

    @functools.wraps(whole)
    def stack(tensors: Sequence[Any], *, out: Any = None) -> Any:
        fit = isinstance(tensors, (tuple, list)) and all(isinstance(x, Handle) for x in tensors)
        if out is not None or not fit or not tensors:
            return whole(tensors, out=out)
        parts = [prepare(x) for x in tensors]
        return apply(TABLE["cat"], tuple(parts), dim(parts))

    return stack


def _column(x: Any) -> Any:
    return x if x.dim() > 1 else x.reshape(x.numel(), 1)


hstack = _stack("hstack", atleast_1d, lambda parts: int(parts[0].dim() > 1))
vstack = _stack("vstack", atleast_2d, lambda parts: 0)
dstack = _stack("dstack", atleast_3d, lambda parts: 2)
column_stack = _stack("column_stack", _column, lambda parts: 1)
row_stack = by_name(vstack, TABLE["vstack"], "row_stack")
