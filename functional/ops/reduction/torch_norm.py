"""`torch.norm`, by the rules of `torch.linalg`'s norms."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, category, is_complex, promote_types, scalar_name
from ...program.op import op
from ..nn.checks import wide
from .norms import need_real_order, vector_norm
from .reduction import Dims, axes

Array = jax.Array


@op(backward="LinalgVectorNormBackward0", saves={"self": "*", "result": "*"})
def norm(
    input: Array, p: float | str | None = "fro", dim: Dims | None = None, keepdim: bool = False,
    dtype: Any = None,
) -> Array:  # fmt: skip
    """Take the p-norm of all or along dims; "fro" is 2, "nuc" the sum of singular values."""
    need_real_order("vector_norm", p)
    if p == "nuc":
        x = input if dtype is None else cast(input, dtype)
        return jnp.linalg.norm(x, "nuc", axis=axes(dim, x.ndim), keepdims=keepdim)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if p == "fro" and isinstance(dim, tuple | list) and len(dim) > 2:
        text = " ".join(map(str, dim))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {text}")
    order = 2.0 if p is None or isinstance(p, str) else p
    if isinstance(dim, tuple | list) and not dim:
        dim = None
    if dtype is not None and category(dtype) >= 2 and category(input.dtype) >= 2:
        if is_complex(input.dtype) != is_complex(dtype):
            kind = "complex" if is_complex(input.dtype) else "real"
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got "
                + scalar_name(dtype)
            )
        if promote_types(input.dtype, dtype) != np.dtype(dtype):
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({scalar_name(input.dtype)}) should "
                f"be convertible without narrowing to the specified dtype ({scalar_name(dtype)})"
            )
    empty = [d for d in axes(dim, input.ndim) if input.shape[d] == 0]
    if dim is not None and empty and (order < 0 or math.isinf(order)):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {order:g} norm on the dimension {empty[0]}"
            "because this dimension is empty and the operation does not have an identity"
        )
    result = jax.eval_shape(lambda x: vector_norm(x, order, dim, keepdim, dtype=dtype), input)
    return cast(vector_norm(wide(input), order, dim, keepdim), result.dtype)
