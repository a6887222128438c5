"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, arange, cat, clamp, diag_embed, finfo, lgamma, mvlgamma, randn, sqrt
from .. import sum as _sum
from .._core.grad_modes import no_grad
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Draw lower Cholesky factors of correlation matrices of size `dim`.

    The determinant of the matrix to the power `concentration - 1` is its density. Drawn is by the
    onion method: each row is a direction and, by a beta distribution, a length.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = arange(dim - 1, dtype=marginal.dtype, device=marginal.device)
        offset = cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand(new.batch_shape + (self.dim,))
        return new

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            u = randn(shape, dtype=y.dtype, device=y.device).tril(-1)
            u = u / u.norm(dim=-1, keepdim=True)
            u[..., 0, :].fill_(0.0)  # which was 0 / 0
            w = sqrt(y) * u
            tiny = finfo(w.dtype).tiny
            return w + diag_embed(clamp(1 - _sum(w**2, dim=-1), min=tiny).sqrt())

    def log_prob(self, value: Any) -> Any:
        # The Jacobian of the factorization puts the power `dim - row` on each diagonal element.
        if self._validate_args:
            self._validate_sample(value)
        dim, concentration = self.dim, self.concentration
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, dim + 1, device=concentration.device)
        order = 2 * (concentration - 1).unsqueeze(-1) + dim - order
        unnormalized = _sum(order * diagonal.log(), dim=-1)
        dm1 = dim - 1
        alpha = concentration + 0.5 * dm1
        numerator = mvlgamma(alpha - 0.5, dm1)
        normalizer = 0.5 * dm1 * math.log(math.pi) + numerator - lgamma(alpha) * dm1
        return unnormalized - normalizer
