"""What the elementwise families share: promotion with PyTorch's shape check, error texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._dtypes import category, is_complex, promote, scalar_name
from ._dims import broadcast_shapes

Array = jax.Array
BOOL = np.dtype("bool")


def aligned(*operands: Any, to_float: bool = False) -> list[Array]:
    """Operands in their common dtype; raises PyTorch's error where shapes do not broadcast."""
    shape: tuple[int, ...] = ()
    for x in operands:
        shape = broadcast_shapes(shape, getattr(x, "shape", ()))
    return promote(*operands, to_float=to_float)


def category_of(x: Any) -> int:
    """Category of an array or a number: 0 bool, 1 integer, 2 float, 3 complex."""
    if hasattr(x, "dtype"):
        return category(x.dtype)
    return (bool, int, float, complex).index(type(x))


def unsupported(kernel: str, dtype: Any) -> NotImplementedError:
    """The error of PyTorch's dispatch macro where `kernel` has no such dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def refuse(kernel: str, dtype: Any, *categories: int) -> None:
    """Raise `unsupported` for dtypes of these categories."""
    if category(dtype) in categories:
        raise unsupported(kernel, dtype)


def refuse_complex(dtype: Any, error: type[Exception], message: str) -> None:
    if is_complex(dtype):
        raise error(message)


def with_jvp(value: Callable[..., Any], tangent: Callable[..., Any]) -> Callable[..., Array]:
    """`value(*arrays)` with derivative `tangent(result, arrays, tangents)`.

    `tangent` is differentiated in turn for double backward, so it must not close over anything
    that depends on the arrays but through its arguments.
    """
    wrapped: Any = jax.custom_jvp(value)

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        result = wrapped(*primals)
        return result, tangent(result, primals, tangents)

    wrapped.defjvp(rule)
    smooth: Callable[..., Array] = wrapped
    return smooth


def _magnitude_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x,), (dx,) = primals, tangents
    return dx * lax.sign(x)


_magnitude = with_jvp(lambda x: lax.abs(x), _magnitude_tangent)


def magnitude(x: Array) -> Array:
    """Absolute value with gradient 0 at 0, where JAX's is 1."""
    return _magnitude(x) if category(x.dtype) == 2 else jnp.abs(x)
