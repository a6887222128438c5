"""PyTorch's `torch.nn.utils.parametrizations`: orthogonal weights, weight and spectral norm."""

from __future__ import annotations

from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from ..._core.grad_modes import no_grad
from ..._tensor.tensor import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from ._orthogonal import _OrthMaps as _OrthMaps
from ._orthogonal import _Orthogonal as _Orthogonal
from ._weight_norm import norm_of, with_norm

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keep a matrix of `module` orthogonal, or unitary if it is complex.

    Args:
      name: of the parameter or buffer, `(..., n, k)`.
      orthogonal_map: "matrix_exp", "cayley" or "householder"; "householder" for real matrices that
        are not square and "matrix_exp" for the others if None.
      use_trivialization: multiply by a fixed orthogonal matrix, so that what it is assigned to it
        becomes.

    Returns:
      `module`.

    Raises:
      ValueError: there is no such tensor, it is no matrix, or there is no such map.

    >>> import leafax
    >>> layer = orthogonal(leafax.nn.Linear(20, 40))
    >>> leafax.dist(layer.weight.T @ layer.weight, leafax.eye(20)) < 1e-4
    tensor(True)
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


def _tensor_of(module: Any, name: str) -> Any:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


class _WeightNorm(Module):
    """Compute a weight from its norms and its direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """Compute the weight."""
        return with_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        """Return the norms of a weight and the weight itself."""
        return norm_of(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the norm and the direction of a weight of `module` apart.

    They are `parametrizations.weight.original0` and `original1`.

    Args:
      name: of the parameter.
      dim: the norm is taken over all others; over all of them for None.

    Returns:
      `module`.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *rest: Any) -> None:
        """Load what the old `weight_norm` saved."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            values = [state_dict.pop(key) for key in old]
            for i, value in enumerate(values):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = value

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    """Divide a weight by its largest singular value, which the power method follows."""

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but "
                f"got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.size(), strict=True):
                drawn = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        if weight.ndim <= 1:
            raise AssertionError(
                f"Expected weight to have more than 1 dimension, got {weight.ndim}"
            )
        if self.dim != 0:
            others = (d for d in range(weight.dim()) if d != self.dim)
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, weight_mat: Any, n_power_iterations: int) -> None:
        """Write better singular vectors into the buffers."""
        if weight_mat.ndim <= 1:
            raise AssertionError(
                f"Expected weight_mat to have more than 1 dimension, got {weight_mat.ndim}"
            )
        for _ in range(n_power_iterations):
            F.normalize(weight_mat.mv(self._v), dim=0, eps=self.eps, out=self._u)
            F.normalize(weight_mat.H.mv(self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        """Compute the normalized weight; in training the buffers follow it first."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, because the next call writes what this one's gradient needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        """Take a value for a normalized one."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a weight of `module` by its largest singular value.

    Its singular vectors are buffers, written in the program of the step that reads the weight.

    Args:
      name: of the parameter.
      n_power_iterations: how many steps of the power method there are each time it is read in
        training.
      eps: the least norm that is divided by.
      dim: of the outputs; 0, or 1 for transposed convolutions, if None.

    Returns:
      `module`.

    Raises:
      ValueError: there is no such tensor.
    """
    weight = _tensor_of(module, name)
    if dim is None:
        turned = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if turned else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module


_end_at_callers(__name__)
