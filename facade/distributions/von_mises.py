"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from leafax.functional.program.op import Op

from .. import Size, double, where
from .. import cos as _cos
from .._core.grad_modes import no_grad
from .._ops.calls.functions import function
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun, 9.8.1 to 9.8.4: polynomials in (x / 3.75)**2 and in 3.75 / x.
_COEF_SMALL = [
    [1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2],
    [0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3],
]
_COEF_LARGE = [
    [0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1,
     0.2635537e-1, -0.1647633e-1, 0.392377e-2],
    [0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1,
     -0.2895312e-1, 0.1787654e-1, -0.420059e-2],
]  # fmt: skip


def _eval_poly(y: Any, coef: Sequence[float]) -> Any:
    result: Any = coef[-1]
    for c in reversed(coef[:-1]):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: Any, order: int = 0) -> Any:
    """The logarithm of `I_order(x)` for x > 0."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    y = x / 3.75
    small = _eval_poly(y * y, _COEF_SMALL[order])
    small = (x.abs() * small if order == 1 else small).log()
    large = x - 0.5 * x.log() + _eval_poly(3.75 / x, _COEF_LARGE[order]).log()
    return where(x < 3.75, small, large)


def _draw(
    key: jax.Array, loc: jax.Array, concentration: jax.Array, proposal_r: jax.Array,
    size: Sequence[int],
) -> jax.Array:  # fmt: skip
    """Draw by rejecting wrapped Cauchy numbers, as Best and Fisher (1979) do."""
    loc, kappa, r = (jnp.broadcast_to(a, size) for a in (loc, concentration, proposal_r))

    def turn(state: Any) -> Any:
        key, x, done = state
        key, own = jax.random.split(key)
        u1, u2, u3 = jax.random.uniform(own, (3, *size), loc.dtype)
        z = jnp.cos(math.pi * u1)
        f = (1 + r * z) / (r + z)
        c = kappa * (r - f)
        accept = (c * (2 - c) - u2 > 0) | (jnp.log(c / u2) + 1 - c >= 0)
        drawn = jnp.sign(u3 - 0.5) * jnp.arccos(jnp.clip(f, -1, 1))
        return key, jnp.where(accept & ~done, drawn, x), done | accept

    # What is no number is accepted never.
    known = jnp.isfinite(loc) & jnp.isfinite(kappa) & jnp.isfinite(r)
    start = key, jnp.full(size, jnp.nan, loc.dtype), ~known
    x = lax.while_loop(lambda state: ~jnp.all(state[2]), turn, start)[1]
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


_rejection_sample = function(
    Op(
        _draw,
        name="von_mises",
        namespace="distributions",
        differentiable=False,
        random=True,
        method=False,
    )  # fmt: skip
)


class VonMises(Distribution):
    """Draw angles around `loc`, in [-pi, pi); `concentration` is about one over the variance."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        normalizer = math.log(2 * math.pi) + _log_modified_bessel_fn(self.concentration, order=0)
        return self.concentration * _cos(value - self.loc) - normalizer

    # Small concentrations need double precision.

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(double)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(double)

    @lazy_property
    def _proposal_r(self) -> Any:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            drawn = _rejection_sample(self._loc, self._concentration, self._proposal_r, shape)
            return drawn.to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        validate_args = self.__dict__.get("_validate_args")
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The circular variance."""
        log_i0 = _log_modified_bessel_fn(self.concentration, order=0)
        return 1 - (_log_modified_bessel_fn(self.concentration, order=1) - log_i0).exp()
