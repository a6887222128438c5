"""Functions of three numbers, elementwise: products added to a number, interpolation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import cast, cpp_name, is_integral, is_number, result_type
from ...program.op import Decorator, ops_with
from ..nn.checks import wide, wide_dtype
from ..shape.dimensions import broadcast_shapes
from .arithmetic import _rounded
from .operands import aligned, refuse

Array = jax.Array


op: Decorator = ops_with(elementwise=True)


@op(
    saves={"tensor1": "tensor2", "tensor2": "tensor1"},
    inplace=True,
    numbers=("value",),
    fits={"value": "integer"},
)
def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Array:
    """Add `value * tensor1 * tensor2`."""
    input, tensor1, tensor2 = aligned(input, tensor1, tensor2)
    refuse("addcmul_cpu_out", input.dtype, 0)
    product = wide(tensor1) * wide(tensor2)
    if type(value) is not int or value != 1:
        product = cast(value, product.dtype) * product
    return _rounded(wide(input) + product, input.dtype)


@op(saves={"tensor1": "tensor2", "tensor2": "*"}, inplace=True, numbers=("value",))
def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Array:
    """Add `value * tensor1 / tensor2`."""
    if is_integral(tensor1.dtype) and is_integral(tensor2.dtype):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
            "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    input, tensor1, tensor2 = aligned(input, tensor1, tensor2)
    value = cast(value, wide_dtype(input.dtype))
    return _rounded(wide(input) + value * wide(tensor1) / wide(tensor2), input.dtype)


@op(saves={"weight": "*", "self": "weight", "end": "weight"}, inplace=True, numbers=("weight",))
def lerp(input: Array, end: Array, weight: Any) -> Array:
    """Go from `input` to `end` by `weight`, exactly at both ends."""
    alone = not is_number(weight) and weight.ndim == 0  # of any dtype, which promotes the others
    for name, x in (("end", end), ("weight", input if alone else weight)):
        if not is_number(x) and x.dtype != input.dtype:
            raise RuntimeError(
                f"expected dtype {cpp_name(input.dtype)} for `{name}` but got dtype "
                f"{cpp_name(x.dtype)}"
            )
    if alone:
        dtype = result_type(input, weight)
        input, end = cast(input, dtype), cast(end, dtype)
    refuse("lerp_kernel_scalar" if is_number(weight) else "lerp_kernel_tensor", input.dtype, 0, 1)
    broadcast_shapes(broadcast_shapes(input.shape, end.shape), getattr(weight, "shape", ()))
    far = not -0.5 < weight < 0.5 if isinstance(weight, (int, float)) else None
    dtype, start, end = input.dtype, wide(input), wide(end)
    w, way = cast(weight, start.dtype), end - start
    if far is not None:
        return _rounded(end - way * (1 - w) if far else start + w * way, dtype)
    between = jnp.where(jnp.abs(w) < 0.5, start + w * way, end - way * (1 - w))
    return _rounded(between, dtype)
