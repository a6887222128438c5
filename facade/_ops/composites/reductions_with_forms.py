"""Reductions and searches whose Python signature has more than one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE, Op

from ..._core.handle import Handle
from ..._core.vmap_checks import refuse_in_vmap
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..._signatures.check_arguments import refuse_wide
from ..indexing.masks import nonzero
from ..writes.check_kind import check_tensor
from ..writes.write_out import check_out, write_out


def _extremum(name: str, pairwise: str) -> Callable[..., Any]:
    whole, along, pair = TABLE[name], TABLE[name + ".dim"], TABLE[pairwise]

    def fn(
        input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None,
        keepdims: bool | None = None, out: Any = None,
    ) -> Any:  # fmt: skip
        dim = axis if dim is None else dim
        keepdim = keepdim if keepdims is None else keepdims
        if isinstance(dim, Handle):
            dim, other = None, dim
        if other is not None:
            made, op = apply(pair, input, other), pair
        elif dim is None:
            made, op = apply(whole, input), whole
        else:
            made, op = apply(along, input, dim, bool(keepdim)), along
        if out is None:
            return made
        return write_out(op, made, out, () if op is whole else (input, other))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = (
        f"The {name}imum of all elements; with `dim` a pair of values and indices; with another\n"
        f"tensor the elementwise {pairwise}."
    )
    return fn


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")


def _middle(name: str) -> Callable[..., Any]:
    whole, along = TABLE[name], TABLE[name + ".dim"]

    def fn(
        input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, out: Any = None
    ) -> Any:
        dim = axis if dim is None else dim
        if dim is None:
            made, op = apply(whole, input), whole
        else:
            made, op = apply(along, input, dim, bool(keepdim)), along
        return made if out is None else write_out(op, made, out)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = "The lower median of all elements; with `dim` a pair of values and indices."
    return fn


median, nanmedian = _middle("median"), _middle("nanmedian")


_MSORT = Op(lambda x: x, name="msort")


def msort(input: Any, *, out: Any = None) -> Any:
    """Return the elements sorted along the first dim."""
    made = input.sort(0)[0]
    if out is None:
        return made
    check_tensor(_MSORT, out)
    return write_out(TABLE["sort"], made, out)


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Compute the p-norm along dims or of all; "fro" is 2, "nuc" the sum of singular values."""
    dim = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    if p != "nuc":
        _need_dims(dim)
    np_dtype = None if dtype is None else dtype.np
    p = p if p is None or isinstance(p, (str, complex)) else float(p)
    if p == "nuc":
        dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim
        made = apply(TABLE["linalg.matrix_norm"], input, "nuc", dims, keepdim, np_dtype)
    else:
        made = apply(TABLE["norm"], input, p, dim, keepdim, np_dtype)
    return made if out is None else write_out(TABLE["linalg.vector_norm"], made, out)


def _need_dims(dim: Any) -> None:
    """Raise in the words of the function that PyTorch's `norm` calls, unless these are dims."""
    of = "linalg_vector_norm(): argument 'dim' (position 3) must be tuple of ints, "
    if isinstance(dim, str):
        raise TypeError(of + "not str")
    first = dim[0] if isinstance(dim, tuple) and dim else dim
    if isinstance(first, bool):
        raise TypeError(of + "but found element of type bool at pos 0")


def where(
    condition: Any, input: Any = None, other: Any = None, *, out: Any = None, **kw: Any
) -> Any:
    """Choose `input` where the condition holds, else `other`; by itself, return where it holds.

    The form with one argument runs the program and returns one index tensor a dimension.
    """
    input = kw.pop("self", input)
    if kw:
        raise TypeError(f"where() got an unexpected keyword argument '{next(iter(kw))}'")
    if input is None and other is None:
        refuse_in_vmap("where", condition)
        return nonzero(condition, as_tuple=True)
    if out is not None:
        check_out(TABLE["where"], out, (condition, input, other))
    if isinstance(condition, Handle) and condition._v.dtype == np.uint8:
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead."
        )
    for chosen in (input, other):
        refuse_wide("Number", chosen)
    made = apply(TABLE["where"], condition, input, other)
    return made if out is None else write_out(TABLE["where"], made, out, (condition, input, other))


def method_where(self: Any, condition: Any, other: Any) -> Any:
    """Return this tensor where the condition holds, else `other`."""
    return where(condition, self, other)


method_where.__name__ = "where"


_ISIN = Op(lambda x: x, name="isin", differentiable=False)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
    out: Any = None,
) -> Any:  # fmt: skip
    """Tell whether each element is among `test_elements`."""
    for x in (elements, test_elements):
        kind = np.dtype(type(x)) if not isinstance(x, Handle) else x._v.dtype  # type: ignore[attr-defined]
        if kind.kind in "bc":
            name = scalar_name(kind)
            raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
    if not isinstance(elements, Handle):  # compared as a number: 2.5 is no integer
        found = (test_elements.detach() == elements).any()
    elif isinstance(test_elements, Handle):
        elements = elements.detach()
        found = (elements.unsqueeze(-1) == test_elements.detach().flatten()).any(-1)
    else:
        found = elements.detach() == test_elements
    found = found.logical_not() if invert else found
    return found if out is None else write_out(_ISIN, found, out)
