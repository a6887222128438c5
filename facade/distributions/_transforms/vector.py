"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from ... import clamp, cumsum, eye, finfo, linalg, tanh
from ...nn.functional import logsigmoid, pad, softplus
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .elementwise import _Alike, _clipped_sigmoid
from .transform import Transform


def _need_dims(shape: Any, count: int) -> None:
    if len(shape) < count:
        raise ValueError("Too few dimensions on input")


class CorrCholeskyTransform(Transform):
    """Map vectors of length `D * (D - 1) / 2` to Cholesky factors of correlation matrices.

    Each row is a unit vector: its elements are partial correlations, the hyperbolic tangents of
    the vector's, each of what of the length the ones before have left.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = tanh(x)
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return partial * pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Any) -> Any:
        left = pad((1 - cumsum(y * y, dim=-1))[..., :-1], (1, 0), value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # the inverse of tanh

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = 1 - (y * y).cumsum(dim=-1)
        # What is left after the last element of a row scales nothing.
        of_rows = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return of_rows + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Alike):
    """Map by the softmax over the last dimension; not bijective, so without a Jacobian."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape


class StickBreakingTransform(_Alike):
    """Map vectors to the simplex of one dimension more, breaking pieces off a stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _log_pieces(self, x: Any) -> Any:
        """The logarithm of the pieces still to come, which centers the map at equal pieces."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x: Any) -> Any:
        z = _clipped_sigmoid(x - self._log_pieces(x))
        left = (1 - z).cumprod(-1)
        return pad(z, (0, 1), value=1) * pad(left, (1, 0), value=1)

    def _inverse(self, y: Any) -> Any:
        broken = y[..., :-1]
        left = clamp(1 - broken.cumsum(-1), min=finfo(y.dtype).tiny)
        return broken.log() - left.log() + self._log_pieces(broken)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._log_pieces(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Alike):
    """Map matrices to lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """Map matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
