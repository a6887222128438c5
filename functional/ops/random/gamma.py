"""Draws of the gamma and Dirichlet laws, with gradients of the draws by what the law depends on.

Neither draw is a smooth function of its noise, so the gradient is that of implicit
reparametrisation: with the probability below the draw held fixed, how far the draw moves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import digamma

from ...program.dtypes import finfo, is_floating, scalar_name
from ...program.op import op
from ..shape.dimensions import broadcast_shapes

Array = jax.Array

# Points of the trapezoidal rule in the logarithm of the integral's variable. The integrands are
# analytic in a strip as wide as pi around it, where this step is exact to double precision.
_STEP, _FIRST, _POINTS = 0.25, -20.0, 121


def _need_floats(kernel: str, *arrays: Array) -> None:
    for x in arrays:
        if not is_floating(x.dtype):
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def _wide(x: Array) -> Array:
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x


@op(method=False, random=True, saves={"self": "self", "result": "self"})
def _standard_gamma(key: Array, input: Array) -> Array:
    """Draw from gamma laws with rate 1 and the concentrations that `input` holds."""
    _need_floats("gamma_cpu", input)

    @jax.custom_jvp
    def draw(concentration: Array) -> Array:
        noise = jax.random.gamma(key, concentration, concentration.shape, concentration.dtype)
        return jnp.maximum(noise, finfo(concentration.dtype).tiny)

    @draw.defjvp
    def move(primals: Any, tangents: Any) -> Any:
        drawn = draw(*primals)
        return drawn, lax.random_gamma_grad(primals[0], drawn) * tangents[0]

    return draw(_wide(input)).astype(input.dtype)


_NO_SECOND = "derivative for aten::{} is not implemented"


@op(
    method=False, backward="NotImplemented",
    no_gradient=(RuntimeError, _NO_SECOND.format("_standard_gamma_grad")),
)  # fmt: skip
def _standard_gamma_grad(input: Array, output: Array) -> Array:
    """Return the derivatives of gamma draws by their concentrations `input`."""
    _need_floats("_standard_gamma_grad_cpu", input, output)
    shape = broadcast_shapes(input.shape, output.shape)
    a, x = (jnp.broadcast_to(_wide(x), shape) for x in (input, output))
    return lax.random_gamma_grad(a, x).astype(input.dtype)


@op(method=False, random=True, saves={"self": "self", "result": "self"})
def _sample_dirichlet(key: Array, input: Array) -> Array:
    """Draw from the Dirichlet laws whose concentrations are the rows of `input`."""
    _need_floats("dirichlet", input)
    limits = finfo(input.dtype)

    @jax.custom_jvp
    def draw(concentration: Array) -> Array:
        # By logarithms, since draws of small concentrations are smaller than any double.
        logs = jax.random.loggamma(key, concentration, concentration.shape, jnp.float64)
        return jnp.clip(jax.nn.softmax(logs, axis=-1), limits.tiny, 1 - limits.epsneg)

    @draw.defjvp
    def move(primals: Any, tangents: Any) -> Any:
        concentration, drawn = primals[0], draw(*primals)
        total = jnp.sum(concentration, axis=-1, keepdims=True)
        pushed = _moved(drawn, concentration, jnp.broadcast_to(total, drawn.shape)) * tangents[0]
        return drawn, pushed - drawn * jnp.sum(pushed, axis=-1, keepdims=True)

    return draw(input.astype(jnp.float64)).astype(input.dtype)


@op(
    method=False, backward="NotImplemented",
    no_gradient=(RuntimeError, _NO_SECOND.format("_dirichlet_grad")),
)  # fmt: skip
def _dirichlet_grad(x: Array, alpha: Array, total: Array) -> Array:
    """Return derivatives of a Dirichlet draw's parts by their own concentrations, over `1 - x`."""
    _need_floats("_dirichlet_grad_cpu", x, alpha, total)
    return _moved(*(a.astype(jnp.float64) for a in (x, alpha, total))).astype(x.dtype)


def _moved(x: Array, alpha: Array, total: Array) -> Array:
    """Differentiate the beta law's distribution function by `alpha`; over its density, negated.

    It is divided by `1 - x` as well. Integrated is over the side of `x` on which less lies, in
    `v = -log(t / z)` where `z` is the distance from that end: nothing cancels there.
    """
    x = jnp.clip(x, np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg)
    beta = total - alpha
    left = x * total <= alpha
    z = jnp.where(left, x, 1 - x)
    near, far = jnp.where(left, alpha, beta), jnp.where(left, beta, alpha)
    shift = digamma(total) - digamma(alpha)
    log_z, log_rest = jnp.log(z), jnp.log1p(-z)

    def add(k: Any, sum_: Array) -> Array:
        v = jnp.exp(_FIRST + _STEP * k) / near
        log_inner = jnp.log1p(-z * jnp.exp(-v))
        weight = jnp.where(left, v - log_z - shift, log_inner + shift)
        exponent = -near * v + (far - 1) * (log_inner - log_rest)
        return sum_ + weight * v * jnp.exp(exponent)

    integral = lax.fori_loop(0, _POINTS, add, jnp.zeros(np.shape(x), jnp.float64))
    return _STEP * z * integral / (1 - x)
