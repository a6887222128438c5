"""Tools of the elementwise families: promotion with PyTorch's shape check, error texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ...program.dtypes import category, finfo, is_complex, is_floating, promote, scalar_name
from ...program.number_fits import C_NAMES
from ...program.op import Fault
from ..nn.checks import repeated
from ..shape.dimensions import broadcast_shapes

Array = jax.Array
BOOL = np.dtype("bool")


def aligned(*operands: Any, to_float: bool = False) -> list[Array]:
    """Cast operands to their common dtype; raise PyTorch's error where shapes do not broadcast."""
    shape: tuple[int, ...] = ()
    for x in operands:
        shape = broadcast_shapes(shape, getattr(x, "shape", ()))
    arrays = promote(*operands, to_float=to_float)
    if arrays[0].dtype.itemsize > 2 or not is_floating(arrays[0].dtype):
        return arrays
    return [repeated(x, shape) if hasattr(y, "shape") else x
            for x, y in zip(arrays, operands, strict=True)]  # fmt: skip


def category_of(x: Any) -> int:
    """Return the category of an array or a number: 0 bool, 1 integer, 2 float, 3 complex."""
    if hasattr(x, "dtype"):
        return category(x.dtype)
    return (bool, int, float, complex).index(type(x))


def faults_of_fit(value: Array, dtype: Any) -> list[Fault]:
    """Return the fault of a number held by an array that the dtype cannot hold, as `check_fits`."""
    dtype = np.dtype(dtype)
    if value.dtype == dtype or dtype == BOOL or value.dtype == BOOL:
        return []
    real, bad = jnp.real(value), jnp.zeros(value.shape, bool)
    if dtype.kind in "iu":
        top = int(np.iinfo(dtype).max)
        low = -top if dtype.kind == "u" else int(np.iinfo(dtype).min)
        wide = real.astype(np.float64)
        bad = ~((wide >= low) & (wide <= top))
    else:
        for part in (real, jnp.imag(value)):
            found = part.astype(finfo(dtype).dtype)
            bad |= jnp.isfinite(part) & ~jnp.isfinite(found)
    if dtype.kind != "c":
        bad |= jnp.imag(value) != 0
    name = C_NAMES.get(dtype.name, dtype.name)
    words = f"value cannot be converted to type {name} without overflow"
    return [Fault(bad, RuntimeError, words)]


def unsupported(kernel: str, dtype: Any) -> NotImplementedError:
    """Return the error of PyTorch's dispatch macro for a dtype that `kernel` does not have."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def refuse(kernel: str, dtype: Any, *categories: int) -> None:
    """Raise `unsupported` for dtypes of these categories."""
    if category(dtype) in categories:
        raise unsupported(kernel, dtype)


def refuse_complex(dtype: Any, error: type[Exception], message: str) -> None:
    if is_complex(dtype):
        raise error(message)


class _Nothing:
    """A zero that takes its factors with it."""

    def _product(self, other: Any) -> _Nothing:
        return self

    def _sum(self, other: Any) -> Any:
        return other

    def __rsub__(self, other: Any) -> Any:
        return other

    def __sub__(self, other: Any) -> Any:
        return self if other is self else -other

    def __neg__(self) -> _Nothing:
        return self

    __mul__ = __rmul__ = __truediv__ = _product
    __add__ = __radd__ = _sum


NOTHING = _Nothing()


def with_jvp(value: Callable[..., Any], tangent: Callable[..., Any]) -> Callable[..., Array]:
    """Give `value(*arrays)` the derivative `tangent(result, arrays, tangents)`.

    `tangent` is differentiated in turn for double backward, so it must not close over anything
    that depends on the arrays but through its arguments. It is a sum of products with tangents;
    those of what does not move are `NOTHING`: a tangent of zeros would make NaN of an infinite or
    undefined factor, as `log(x)` is in the derivative of `x ** 2` for negative `x`.
    """
    wrapped: Any = jax.custom_jvp(value)

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        result = wrapped(*primals)
        moving = tuple(NOTHING if isinstance(t, SymbolicZero) else t for t in tangents)
        along = tangent(result, primals, moving)
        return result, jnp.zeros_like(result) if along is NOTHING else along

    wrapped.defjvp(rule, symbolic_zeros=True)
    smooth: Callable[..., Array] = wrapped
    return smooth


def _quotient_tangent(result: Array, primals: Any, tangents: Any) -> Any:
    (_, y), (dx, dy) = primals, tangents
    return (dx if dx is NOTHING else dx / y) - dy * (result / y)


_exact_quotient = with_jvp(lambda x, y: x / jnp.where(x == x, y, 1), _quotient_tangent)


def _divide_complex(x: Array, y: Array) -> Array:
    """Divide as NumPy and PyTorch do: what is divided by 0 is infinite, not NaN."""
    (a, b), (c, d) = (jnp.real(x), jnp.imag(x)), (jnp.real(y), jnp.imag(y))
    by_real, by_imag = d / c, c / d
    first, second = 1 / (c + d * by_real), 1 / (c * by_imag + d)
    larger, zero = jnp.abs(c) >= jnp.abs(d), (c == 0) & (d == 0)
    real = jnp.where(larger, (a + b * by_real) * first, (a * by_imag + b) * second)
    imag = jnp.where(larger, (b - a * by_real) * first, (b * by_imag - a) * second)
    return lax.complex(jnp.where(zero, a / jnp.abs(c), real), jnp.where(zero, b / jnp.abs(d), imag))


_complex_quotient = with_jvp(_divide_complex, _quotient_tangent)


def quotient(x: Array, y: Array) -> Array:
    """Compute `x / y`, rounded as a division is.

    XLA divides by what was broadcast, or is known, by multiplying with its reciprocal, which costs
    a third of the results their last bit. A divisor that is 1 where `x` is NaN keeps it from that.
    """
    if is_complex(y.dtype) and x.dtype == y.dtype:
        return _complex_quotient(x, y)
    broadcast = y.size == 1 or y.shape != broadcast_shapes(x.shape, y.shape)
    if not broadcast or not is_floating(y.dtype) or x.dtype != y.dtype:
        return x / y
    return _exact_quotient(x, y)


def select(mask: Array, x: Any) -> Any:
    """Return `x` where `mask` holds, else 0: not a product, so what is left out may be anything."""
    return x if x is NOTHING else jnp.where(mask, x, 0)


def unmoved(x: Array) -> Array:
    """Return `x`, with gradient 0 where it is NaN."""
    return jnp.where(x == x, x, lax.stop_gradient(x))


def _magnitude_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x,), (dx,) = primals, tangents
    return dx * jnp.where(x == x, lax.sign(x), 0)  # the sign of NaN is 0 in PyTorch


_magnitude = with_jvp(lambda x: lax.abs(x), _magnitude_tangent)


def magnitude(x: Array) -> Array:
    """Compute the absolute value with gradient 0 at 0, where JAX's is 1."""
    return _magnitude(x) if category(x.dtype) == 2 else jnp.abs(x)


def two_floats(kernel: str, a: Any, b: Any) -> list[Any]:
    """Return two real operands in their common dtype; refuse others in the words of `kernel`."""
    a, b = aligned(a, b)
    refuse(kernel, a.dtype, 0, 1, 3)
    return [a, b]
