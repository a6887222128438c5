"""Distributions given by a covariance, by its inverse or by its Cholesky factor."""

from __future__ import annotations

from typing import Any

from ... import linalg
from ..distribution import Distribution
from .matrices import _precision_to_scale_tril

NAMES = ("covariance_matrix", "precision_matrix", "scale_tril")


class ByMatrix(Distribution):
    """Hold the matrix that was given, and its lower Cholesky factor.

    Attributes:
      _unbroadcasted_scale_tril: the factor of the covariance, with the batch that was given.
    """

    _unbroadcasted_scale_tril: Any

    def _hold(self, batch_shape: Any, matrices: dict[str, Any]) -> None:
        for name, matrix in matrices.items():
            if matrix is not None:
                setattr(self, name, matrix.expand(batch_shape + (-1, -1)))

    def _factor(self, matrices: dict[str, Any]) -> None:
        if matrices["scale_tril"] is not None:
            self._unbroadcasted_scale_tril = matrices["scale_tril"]
        elif matrices["covariance_matrix"] is not None:
            self._unbroadcasted_scale_tril = linalg.cholesky(matrices["covariance_matrix"])
        else:
            precision = matrices["precision_matrix"]
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision)

    def _expand_matrices(self, new: Any, shape: Any) -> None:
        for name in NAMES:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))

    def _log_diagonal(self) -> Any:
        """Half the log determinant of the covariance."""
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
