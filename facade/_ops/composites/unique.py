"""`unique` and its kin: how many results there are depends on the numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from leafax.functional.ops.shape.dimensions import wrap_dim
from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import Op, camel

from ..._autograd.forward_mode.no_forward_derivative import missing_derivative_error
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._core.vmap_checks import refuse_in_vmap
from ..._dispatch.conj_neg_bits import held
from ..._dispatch.record import apply
from ..._dispatch.tangents import has_tangent
from ..._storage.lay_out import lay_out
from ..creation.from_arrays import from_numpy_beside


def _refuse_complex(input: Any, dim: int | None) -> None:
    if dim is not None:
        wrap_dim(dim, input.dim())
    if input.is_complex():
        what = "unique" if dim is None else "unique_dim"
        raise NotImplementedError(f"\"{what}\" not implemented for '{scalar_name(input._v.dtype)}'")


def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Return the distinct elements (or slices) in order, with inverse and counts if asked.

    A result of what requires grad requires grad, as in PyTorch, where backward raises.
    """
    if not isinstance(input, Handle):
        kernel = "_unique2" if dim is None else "unique_dim"
        kind = name_of_type(input)
        raise TypeError(f"{kernel}(): argument 'input' (position 1) must be Tensor, not {kind}")
    _refuse_complex(input, dim)
    refuse_in_vmap("_unique2" if dim is None else "unique_dim", input)
    found = _unique2(input, sorted, dim=dim)
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements (or slices along `dim`) without immediate repetitions."""
    _refuse_complex(input, dim)
    refuse_in_vmap("unique_consecutive", input)
    x = held(input)
    if dim is not None:
        dim = _slice_dim(input, dim)
    if dim is not None and not x.size:
        _need_slices(x, dim)
        rows = np.zeros((0, 1))
    else:
        rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(1)
    first = np.flatnonzero(starts)
    values = x.reshape(-1)[first] if dim is None else np.take(x, first, dim)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, len(rows)))
    if dim is None:
        inverse = inverse.reshape(x.shape)
    found = _found("unique_consecutive", input, values, first, dim), inverse, counts
    return _asked(found, return_inverse, return_counts)


def _slice_dim(input: Any, dim: int) -> int:
    if not input.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    input.size(dim)  # raises where there is no such dim
    return dim % int(input.dim())


def _need_slices(x: Any, dim: int) -> None:
    """Raise unless `dim` is the only one of size 0 in an empty array."""
    if not x.shape[dim] and list(x.shape).count(0) > 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )
    if x.shape[dim]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )


def _unique(input: Any, sorted: bool = True, return_inverse: bool = False) -> Any:
    """Return the distinct elements, and where each element is among them (empty if not asked)."""
    found = _unique2(input, sorted, name="_unique")
    return found[0], _integers(found[1] if return_inverse else [], input)


def _unique2(
    input: Any, sorted: bool = True, dim: int | None = None, name: str = "_unique2"
) -> tuple[Any, Any, Any]:
    x = held(input)
    if dim is not None:
        dim = _slice_dim(input, dim)
        if not x.size:
            _need_slices(x, dim)
    halves = x.dtype.kind == "V" and dim is None
    wide = x.astype(np.float32) if halves else x  # whose NaNs are sorted last
    values, first, inverse, counts = np.unique(
        wide, return_index=True, return_inverse=True, return_counts=True, axis=dim,
        equal_nan=False,
    )  # fmt: skip
    if dim is None:
        inverse = inverse.reshape(tuple(input.shape))
    else:
        name = "unique_dim"
    return _found(name, input, values.astype(x.dtype), first, dim), inverse, counts


@cache
def _without_derivative(name: str) -> Op:
    def fn(input: Any, index: Any, dim: int | None) -> Any:
        flat = input.reshape(-1) if dim is None else input
        return jnp.take(flat, index, 0 if dim is None else dim)

    error = NotImplementedError, f"the derivative for '{name}' is not implemented."
    return Op(fn, name=name, backward=camel(name) + "Backward0", no_gradient=error)


def _found(name: str, input: Any, values: Any, first: Any, dim: int | None) -> Any:
    """Return the values, as data; with a history that backward refuses if `input` has one.

    Raises:
      NotImplementedError: if `input` has a tangent.
    """
    if has_tangent(input):
        raise missing_derivative_error(name)
    if local.mode.grad and input._tracked:
        found = apply(_without_derivative(name), input, _integers(first, input), dim)
    else:
        found = from_numpy_beside(input, np.ascontiguousarray(values))
    if not dim:
        return found
    strides = list(contiguous_strides(np.moveaxis(values, dim, 0).shape))
    strides.insert(dim, strides.pop(0))  # the slices lie one after the other
    return lay_out(found, tuple(strides))


def _integers(values: Any, beside: Any) -> Any:
    return from_numpy_beside(beside, np.asarray(values).astype(np.int64))


def _asked(found: tuple[Any, Any, Any], want_inverse: bool, want_counts: bool) -> Any:
    made = [found[0]]
    if want_inverse:
        made.append(_integers(found[1], found[0]))
    if want_counts:
        made.append(_integers(found[2], found[0]))
    return made[0] if len(made) == 1 else tuple(made)
