"""Checks of matrices before anything is computed, in PyTorch's words.

One function for each check that its own ops share; an op calls those that PyTorch's calls, in the
same order, since the first that fails is what the caller reads. They look at shapes and dtypes
alone, so they raise at the line that recorded the op.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import is_floating, is_integral, scalar_name
from ..shape import dimensions

Array = jax.Array

_SIXTEEN_BITS = 2


def _is_low(dtype: Any) -> bool:
    return bool(is_floating(dtype) and dtype.itemsize == _SIXTEEN_BITS)


def computes(dtype: Any) -> bool:
    """Return True if LAPACK computes in a dtype."""
    return not is_integral(dtype) and not _is_low(dtype)


def size(x: Array, dim: int) -> int:
    """Return the length of a dim, which the tensor may not have."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return x.shape[dimensions.wrap_dim(dim, x.ndim)]  # type: ignore[no-any-return]  # or a symbol


# One matrix --------------------------------------------------------------------------------------


def need_matrix(name: str, x: Array, argument: str = "A") -> None:
    """Require a matrix, or a batch of them."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def need_dims(name: str, argument: str, x: Array) -> None:
    """Require a matrix, in the words of least squares and of Householder reflections."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: {argument} must have at least 2 dimensions.")


def need_two_dims(name: str, x: Array) -> None:
    """Require a matrix, in the words of LU factorizations."""
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(x.shape)} instead"
        )


def need_float(name: str, x: Array, low: bool = True) -> None:
    """Require a floating point or complex dtype; none of 16 bits without `low`."""
    if is_integral(x.dtype):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            + scalar_name(x.dtype)
        )
    if not low and _is_low(x.dtype):
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {scalar_name(x.dtype)}"
        )


def need_equal_sides(name: str, x: Array, argument: str = "A") -> None:
    """Require a square matrix, or a batch of them, of any dtype."""
    need_matrix(name, x, argument)
    rows, columns = x.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by "
            f"{columns} matrices"
        )


def need_square(name: str, x: Array, low: bool = True) -> None:
    """Require a square matrix of floating point or complex numbers, or a batch of them."""
    need_equal_sides(name, x)
    need_float(name, x, low)


def need_kernel(kernel: str, x: Array, empty: bool = False) -> None:
    """Require a dtype that LAPACK computes in.

    Args:
      empty: PyTorch asks of empty matrices as well.
    """
    if (x.size or empty) and not computes(x.dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def need_epsilon(x: Array) -> None:
    """Require a dtype whose rounding PyTorch knows, where tolerances follow from it."""
    if not computes(x.dtype):
        raise RuntimeError("This function doesn't handle types other than float and double")


# A matrix and a right-hand side ------------------------------------------------------------------


def need_same_dtype(name: str, **operands: Array) -> None:
    """Require one dtype of two operands, given by the names that PyTorch has for them."""
    (a, x), (b, y) = operands.items()
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"{name}: Expected {a} and {b} to have the same dtype, but found {a} of type "
            f"{scalar_name(x.dtype)} and {b} of type {scalar_name(y.dtype)} instead"
        )


def need_solvable(name: str, a: Array, b: Array, left: bool = True) -> None:
    """Square `a` and a `b` of as many rows (columns, from the right)."""
    need_equal_sides(name, a)
    need_matrix(name, b, "B")
    if a.shape[-1] != b.shape[-2 if left else -1]:
        shapes = [f"{x.shape[-2]}x{x.shape[-1]}" for x in (a, b)]
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({shapes[0]} and {shapes[1]})"
        )


def need_linear_system(name: str, a: Array, b: Array) -> None:
    """Require a linear system in the words of older functions: of one dtype too."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{scalar_name(b.dtype)} and A of type {scalar_name(a.dtype)} instead."
        )
    rows, columns = size(a, -2), size(a, -1)
    if rows != columns:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    if columns != size(b, -2):
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {columns} by {columns} but "
            f"each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


def need_pivots_of(name: str, matrix: str, a: Array, pivots: Array) -> None:
    """Require as many pivots as `a`, the argument `matrix`, has rows."""
    if pivots.shape != a.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected {matrix}.shape[:-1] and pivots.shape to be the same, but got "
            f"pivots with shape {list(pivots.shape)} instead"
        )


def is_vector_rhs(a: Array, b: Array) -> bool:
    """Return True if `b` holds vectors, one for each matrix of `a`, and not matrices."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def batched(a: Array, b: Array) -> tuple[Array, Array]:
    """Repeat matrices and right-hand sides to as many batches as the other has."""
    batch = dimensions.broadcast_shapes(b.shape[:-2], a.shape[:-2])
    return (
        jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:]),
    )  # fmt: skip


# Householder reflections -------------------------------------------------------------------------


def need_tau_of(name: str, input: Array, tau: Array) -> None:
    """Require a scale for each reflection of each matrix."""
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    need_batch_of(name, "tau", tau.shape[:-1], input)


def need_batch_of(name: str, argument: str, batch: tuple[int, ...], input: Array) -> None:
    """Require as many batches as `input` has matrices."""
    if batch != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but "
            f"got {list(batch)}"
        )
