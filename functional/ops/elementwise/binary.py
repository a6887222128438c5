"""Functions of two numbers, elementwise, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import bfloat16, category, is_complex, promote, result_type, scalar_name
from ...program.op import Decorator, ops_with
from ..nn.checks import wide
from .operands import aligned, refuse, refuse_complex, with_jvp

op: Decorator = ops_with(elementwise=True)

Array = jax.Array


def _copysign_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    x, _ = primals
    return tangents[0] * jnp.where(x == 0, 0, result / jnp.where(x == 0, 1, x))


_copysign = with_jvp(jnp.copysign, _copysign_tangent)


def _in_full(fn: Any, x: Array, y: Array) -> Array:
    """Compute halves in float32 and round once, as PyTorch's kernels do."""
    return fn(*jnp.broadcast_arrays(wide(x), wide(y))).astype(x.dtype)  # type: ignore[no-any-return]


@op(saves={"self": "self", "result": "*"}, inplace=True, numbers=("other",))
def copysign(input: Array, other: Any) -> Array:
    """Give `input` the sign of `other`; the gradient at 0 is 0."""
    x, y = aligned(input, other, to_float=True)
    refuse("copysign_cpu", x.dtype, 3)
    return _copysign(*jnp.broadcast_arrays(x, y))


def _added(power: Any) -> Any:
    """Return the tangent of `log(power(x) + power(y))`, by PyTorch's formulas."""

    def tangent(result: Array, primals: Any, tangents: Any) -> Array:
        (x, y), (dx, dy) = primals, tangents
        return dx * (1 / (1 + power(y - x))) + dy * (1 / (1 + power(x - y)))

    return tangent


def _both(fn: Any, power: Any) -> Any:
    smooth = with_jvp(fn, _added(power))
    return lambda x, y: smooth(*jnp.broadcast_arrays(x, y))


_logaddexp = _both(lambda x, y: jnp.logaddexp(x, y), jnp.exp)
_logaddexp2 = _both(lambda x, y: jnp.logaddexp2(x, y), jnp.exp2)


@op(saves={"self": "*", "other": "*"})
def logaddexp(input: Array, other: Array) -> Array:
    """Take `log(exp(input) + exp(other))`, without overflow."""
    x, y = aligned(input, other)
    refuse("logaddexp_cpu", x.dtype, 0, 1)
    return _in_full(_complex_logaddexp if is_complex(x.dtype) else _logaddexp, x, y)


def _complex_logaddexp(x: Array, y: Array) -> Array:
    """Return the sum's logarithm on the branch of the operand with the larger real part."""
    first = x.real < y.real
    low, high = jnp.where(first, x, y), jnp.where(first, y, x)
    even = ~jnp.isfinite(low.real) & (low.real == high.real)
    zero = jnp.zeros((), x.dtype)
    apart = jnp.log1p(jnp.exp(jnp.where(even, zero, low) - jnp.where(even, zero, high))) + high
    return jnp.where(
        even, jnp.where(low.real < 0, low, jnp.log(jnp.exp(low) + jnp.exp(high))), apart
    )


@op(saves={"self": "*", "other": "*"})
def logaddexp2(input: Array, other: Array) -> Array:
    """Take `log2(2**input + 2**other)`, without overflow."""
    x, y = aligned(input, other)
    refuse("logaddexp2_cpu", x.dtype, 0, 1, 3)
    return _in_full(_logaddexp2, x, y)


def _xlogy_value(x: Array, y: Array) -> Array:
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log(y))


def _xlogy_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x, y), (dx, dy) = primals, tangents
    flat = (x == 0) & (y <= 0)
    return dx * jnp.where(flat, 0, jnp.log(jnp.where(flat, 1, y))) + dy * (x / y)


_xlogy = with_jvp(_xlogy_value, _xlogy_tangent)


@op(saves={"self": "*", "other": "*"}, inplace=True, numbers=("input", "other"))
def xlogy(input: Any, other: Any) -> Array:
    """Take `input * log(other)`, 0 where `input` is 0."""
    x, y = aligned(input, other, to_float=True)
    refuse("xlogy_cpu", x.dtype, 3)
    return _xlogy(*jnp.broadcast_arrays(x, y))


@op(
    backward="NotImplemented", inplace=True,
    no_gradient=(RuntimeError, "derivative for aten::heaviside is not implemented"),
)  # fmt: skip
def heaviside(input: Array, values: Array) -> Array:
    """Step from 0 to 1; at 0 it is `values`. it has no derivative."""
    refuse_complex(result_type(input, values), RuntimeError,
                   "heaviside is not yet implemented for complex tensors.")  # fmt: skip
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    x, values = aligned(lax.stop_gradient(input), lax.stop_gradient(values))
    return jnp.where(x == 0, values, (x > 0).astype(x.dtype))


def _hypot_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x, y), (dx, dy) = primals, tangents
    return (x * dx + y * dy) / result


def _atan2_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (y, x), (dy, dx) = primals, tangents
    square = x * x + y * y
    scale = jnp.where(square == 0, 0, 1 / jnp.where(square == 0, 1, square))
    return (dy * x - dx * y) * scale


_hypot = with_jvp(jnp.hypot, _hypot_tangent)
arctan2 = with_jvp(lambda y, x: lax.atan2(y, x), _atan2_tangent)


@op(saves={"self": "self", "other": "other", "result": "*"}, inplace=True)
def hypot(input: Array, other: Array) -> Array:
    """Take the hypotenuse, without overflow."""
    x, y = aligned(input, other)
    refuse("hypot_cpu", x.dtype, 0, 1, 3)
    return _in_full(_hypot, x, y)


@op(saves={"self": "*", "other": "*"}, inplace=True, aliases=("arctan2",))
def atan2(input: Array, other: Array) -> Array:
    """Take the angle of the point (other, input); the gradient at the origin is 0."""
    y, x = aligned(input, other, to_float=True)
    refuse("atan2_cpu", x.dtype, 3)
    return arctan2(*jnp.broadcast_arrays(y, x))


@op(saves={"self": "*"})
def angle(input: Array) -> Array:
    """Take the angle in the complex plane: 0 or pi for real numbers."""
    if is_complex(input.dtype):
        return arctan2(jnp.imag(input), jnp.real(input))
    (x,) = promote(input, to_float=True)
    x = lax.stop_gradient(x)
    return jnp.where(x < 0, jnp.asarray(jnp.pi, x.dtype), jnp.where(x != x, x, 0))


def _real_write(base: Array, new: Array) -> Array:
    return lax.complex(new, jnp.imag(base)) if is_complex(base.dtype) else new


@op(backward="SelectBackward0", view=True, write=_real_write)
def real(input: Array) -> Array:
    """View the real part."""
    return jnp.real(input)


@op(backward="SelectBackward0", view=True,
    write=lambda base, new: lax.complex(jnp.real(base), new))  # fmt: skip
def imag(input: Array) -> Array:
    """View the imaginary part."""
    if not is_complex(input.dtype):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return jnp.imag(input)


def _conjugate(x: Array) -> Array:
    return jnp.conj(x) if is_complex(x.dtype) else x


@op(view=True, write=lambda base, new: _conjugate(new))
def conj(input: Array) -> Array:
    """View the complex conjugate."""
    return _conjugate(input)


@op(view=True, write=lambda base, new: -new)
def _neg_view(input: Array) -> Array:
    """View the negative."""
    return -input


@op(backward="ConjPhysicalBackward0", inplace=True)
def conj_physical(input: Array) -> Array:
    """Take the complex conjugate."""
    return _conjugate(input)


@op(view=True, method=False, write=lambda base, new: lax.complex(new[..., 0], new[..., 1]))
def view_as_real(input: Array) -> Array:
    """View a complex tensor as real, with real and imaginary parts along a new last dim."""
    if not is_complex(input.dtype):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return jnp.stack([jnp.real(input), jnp.imag(input)], -1)


@op(view=True, method=False, write=lambda base, new: view_as_real(new))
def view_as_complex(input: Array) -> Array:
    """View pairs of real numbers along the last dim as complex ones."""
    if category(input.dtype) != 2 or input.dtype == bfloat16:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {scalar_name(input.dtype)}"
        )
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.dtype == np.dtype("float16"):
        raise NotImplementedError("complex32 does not exist in JAX")
    return lax.complex(input[..., 0], input[..., 1])


@op(name="complex", saves={"real": "*", "imag": "*"}, method=False)
def complex_(real: Array, imag: Array) -> Array:
    """Make complex numbers of their parts."""
    if real.dtype not in (np.dtype("float32"), np.dtype("float64"), np.dtype("float16")) or (
        imag.dtype.kind != "f"
    ):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{scalar_name(real.dtype)} and {scalar_name(imag.dtype)}"
        )
    if real.dtype != imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_name(real.dtype)} but got scalar type "
            f"{scalar_name(imag.dtype)} for second argument"
        )
    if real.dtype == np.dtype("float16"):
        raise NotImplementedError("complex32 does not exist in JAX")
    real, imag = jnp.broadcast_arrays(*aligned(real, imag))
    return lax.complex(real, imag)
