"""Random counts whose law the tensor holds: Poisson and binomial."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_floating, scalar_name
from ...program.op import Fault, op
from ..shape.dimensions import broadcast_shapes

Array = jax.Array

_BAD_RATE = "invalid Poisson rate, expected rate to be non-negative"


def _check_poisson(key: Array, input: Array) -> list[Fault]:
    return [Fault(input < 0, RuntimeError, _BAD_RATE)]


@op(method=False, random=True, check=_check_poisson)
def poisson(key: Array, input: Array) -> Array:
    """Draw counts of the Poisson law with the rates that `input` holds; the gradient is zero."""
    if not is_floating(input.dtype):
        raise NotImplementedError(
            f"\"poisson_cpu\" not implemented for '{scalar_name(input.dtype)}'"
        )
    rate = lax.stop_gradient(input).astype(np.float64)
    return jax.random.poisson(key, rate, input.shape, np.int64).astype(input.dtype)


@op(
    method=False, random=True, backward="NotImplemented",
    no_gradient=(RuntimeError, "derivative for aten::binomial is not implemented"),
)  # fmt: skip
def binomial(key: Array, count: Array, prob: Array) -> Array:
    """Draw how many of `count` trials succeed, each with probability `prob`."""
    for name, x in (("count", count), ("prob", prob)):
        if not is_floating(x.dtype):
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{scalar_name(x.dtype)}"
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_name(prob.dtype)} but expected {scalar_name(count.dtype)}"
        )
    shape = broadcast_shapes(count.shape, prob.shape)
    n, p = (lax.stop_gradient(x).astype(np.float64) for x in (count, prob))
    # Outside of [0, 1] PyTorch has all trials fail or succeed.
    draws = jax.random.binomial(key, n, jnp.clip(p, 0, 1), shape, np.float64)
    return jnp.where(n < 0, 0, draws).astype(count.dtype)
