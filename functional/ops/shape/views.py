"""View ops that keep all elements: new shapes and new orders of dims.

A view shares storage with its first argument. Each is a pure function here; `write` puts a new
view back into its base, which is how in-place changes of a view reach the tensors that share it.
Views of some of the elements are in `slices.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_complex
from ...program.op import op
from . import dimensions

Array = jax.Array
Dims = int | Sequence[int]


def _write_reshaped(base: Array, new: Array, *args: Any, **kwargs: Any) -> Array:
    return new.reshape(base.shape)


def _write_whole(base: Array, new: Array, *args: Any, **kwargs: Any) -> Array:
    return new


def _write_permuted(order: Callable[..., dimensions.Shape]) -> Callable[..., Array]:
    def write(base: Array, new: Array, *args: Any, **kwargs: Any) -> Array:
        return lax.transpose(new, np.argsort(order(base.ndim, *args, **kwargs)))

    return write


# Same elements, same order -------------------------------------------------------------------


@op(view=True, function=False, write=_write_reshaped, sizes=("size",))
def view(input: Array, size: Sequence[int]) -> Array:
    """Give the same elements a new shape; -1 infers one dim."""
    return lax.reshape(input, dimensions.infer_size(size, input.size))


def _write_dtype(base: Array, new: Array, *args: Any, **kwargs: Any) -> Array:
    return _of_bytes(_bytes_of(new).reshape(*base.shape, base.dtype.itemsize), base.dtype)


@op(
    view=True, function=False, method=False, differentiable=False, backward="ViewBackward1",
    write=_write_dtype,
)  # fmt: skip
def view_dtype(input: Array, dtype: np.dtype, itemsize: int) -> Array:
    """Read the same bytes as another dtype, `x.view(dtype)`; the last dim scales with its size.

    Args:
      itemsize: that of the input, which the rule for strides has to know.
    """
    found, size = _bytes_of(input), np.dtype(dtype).itemsize
    if itemsize != size:
        found = found.reshape(*input.shape[:-1], input.shape[-1] * itemsize // size, size)
    return _of_bytes(found, np.dtype(dtype))


def _bytes_of(x: Array) -> Array:
    """Return the bytes of each element along a new last dim."""
    shape = x.shape
    if is_complex(x.dtype):
        x = jnp.stack([x.real, x.imag], -1)
    x = x.astype(np.uint8) if x.dtype == np.bool_ else lax.bitcast_convert_type(x, np.uint8)
    return x.reshape(*shape, 1 if x.ndim == len(shape) else math.prod(x.shape[len(shape) :]))


def _of_bytes(x: Array, dtype: Any) -> Array:
    """Return elements of `dtype` from the bytes along the last dim; not 0 means True."""
    if dtype == np.bool_:
        return x[..., 0] != 0
    if is_complex(dtype):
        real = np.zeros((), dtype).real.dtype
        parts = lax.bitcast_convert_type(x.reshape(*x.shape[:-1], 2, real.itemsize), real)
        return lax.complex(parts[..., 0], parts[..., 1])
    return lax.bitcast_convert_type(x[..., 0] if dtype.itemsize == 1 else x, dtype)


@op(view=True, backward="ViewBackward0", write=_write_reshaped, sizes=("shape",))
def reshape(input: Array, shape: Sequence[int]) -> Array:
    """Give the same elements a new shape; PyTorch copies where strides do not allow a view."""
    return lax.reshape(input, dimensions.infer_size(shape, input.size))


@op(view=True, backward="ViewBackward0", write=_write_reshaped)
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Merge adjacent dims into one; 0-dim tensors become 1-dim."""
    return lax.reshape(input, dimensions.flatten_size(input.shape, start_dim, end_dim))


@op(view=True, backward="ViewBackward0", write=_write_reshaped)
def ravel(input: Array) -> Array:
    """Merge all dims into one."""
    return lax.reshape(input, (input.size,))


@op(view=True, backward="ViewBackward0", write=_write_reshaped, sizes=("sizes",))
def unflatten(input: Array, dim: int, sizes: Sequence[int]) -> Array:
    """Split one dim into several; -1 infers one of them."""
    return lax.reshape(input, dimensions.unflatten_size(input.shape, dim, sizes))


@op(view=True, write=_write_reshaped)
def unsqueeze(input: Array, dim: int) -> Array:
    """Insert a dim of length 1."""
    return lax.expand_dims(input, (dimensions.wrap_dim(dim, input.ndim + 1),))


@op(view=True, write=_write_reshaped)
def squeeze(input: Array, dim: Dims | None = None) -> Array:
    """Drop all dims of length 1, or those named if they are."""
    return lax.squeeze(input, dimensions.squeezed_dims(input.shape, dim))


@op(view=True, function=False, method=False, write=_write_whole)
def alias(input: Array) -> Array:
    """Return a view of everything, `x[...]`."""
    return input


@op(view=True, differentiable=False, write=_write_whole)
def detach(input: Array) -> Array:
    """Return a view of everything that is cut from the gradient's graph."""
    return input


# Same elements, another order ----------------------------------------------------------------


@op(view=True, write=_write_permuted(lambda ndim, dims: dimensions.permute_order(dims, ndim)))
def permute(input: Array, dims: Sequence[int]) -> Array:
    """Reorder all dims."""
    return lax.transpose(input, dimensions.permute_order(dims, input.ndim))


def _transpose_order(ndim: int, dim0: int, dim1: int) -> dimensions.Shape:
    return dimensions.transpose_order(dim0, dim1, ndim)


@op(view=True, write=_write_permuted(_transpose_order))
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Swap two dims."""
    return lax.transpose(input, dimensions.transpose_order(dim0, dim1, input.ndim))


@op(
    view=True,
    backward="TransposeBackward0",
    write=_write_permuted(
        lambda ndim, axis0, axis1: dimensions.transpose_order(axis0, axis1, ndim)
    ),
)
def swapaxes(input: Array, axis0: int, axis1: int) -> Array:
    """Swap two dims, by NumPy's name."""
    return lax.transpose(input, dimensions.transpose_order(axis0, axis1, input.ndim))


@op(view=True, backward="TransposeBackward0", write=_write_permuted(_transpose_order))
def swapdims(input: Array, dim0: int, dim1: int) -> Array:
    """Swap two dims."""
    return lax.transpose(input, dimensions.transpose_order(dim0, dim1, input.ndim))


@op(view=True, write=_write_permuted(lambda ndim: tuple(reversed(range(ndim)))))
def t(input: Array) -> Array:
    """Transpose a matrix; vectors and 0-dim tensors pass through."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return lax.transpose(input, tuple(reversed(range(input.ndim))))


@op(
    view=True, function=False, method=False, backward="PermuteBackward0",
    write=_write_permuted(lambda ndim: tuple(reversed(range(ndim)))),
)  # fmt: skip
def T(input: Array) -> Array:  # noqa: N802
    """Reverse all dims."""
    return lax.transpose(input, tuple(reversed(range(input.ndim))))


@op(
    view=True, function=False, method=False, backward="TransposeBackward0",
    write=_write_permuted(lambda ndim: dimensions.matrix_order(ndim, "mT")),
)  # fmt: skip
def mT(input: Array) -> Array:  # noqa: N802
    """Swap the last two dims."""
    return lax.transpose(input, dimensions.matrix_order(input.ndim, "mT"))


def _conj(x: Array) -> Array:
    return lax.conj(x) if is_complex(x.dtype) else x


def _write_adjoint(base: Array, new: Array) -> Array:
    return _conj(lax.transpose(new, dimensions.matrix_order(base.ndim, "adjoint()")))


@op(view=True, backward="TransposeBackward0", write=_write_adjoint)
def adjoint(input: Array) -> Array:
    """Swap the last two dims and conjugate."""
    return _conj(lax.transpose(input, dimensions.matrix_order(input.ndim, "adjoint()")))


@op(view=True, function=False, method=False, backward="TransposeBackward0", write=_write_adjoint)
def mH(input: Array) -> Array:  # noqa: N802
    """Swap the last two dims and conjugate, as a property."""
    return _conj(lax.transpose(input, dimensions.matrix_order(input.ndim, "mH")))


@op(view=True, function=False, method=False, backward="TransposeBackward0", write=_write_adjoint)
def H(input: Array) -> Array:  # noqa: N802
    """Transpose and conjugate a matrix; 0-dim tensors pass through."""
    if input.ndim not in (0, 2):
        hint = ". For batches of matrices, consider using tensor.mH" if input.ndim > 2 else "."
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor{hint}"
        )
    return _conj(lax.transpose(input, tuple(reversed(range(input.ndim)))))


def _movedim_order(ndim: int, source: Dims, destination: Dims) -> dimensions.Shape:
    return dimensions.movedim_order(source, destination, ndim)


@op(
    view=True, backward="PermuteBackward0", aliases=("moveaxis",),
    write=_write_permuted(_movedim_order),
)  # fmt: skip
def movedim(input: Array, source: Dims, destination: Dims) -> Array:
    """Move dims to new places; the others keep their order."""
    return lax.transpose(input, dimensions.movedim_order(source, destination, input.ndim))
