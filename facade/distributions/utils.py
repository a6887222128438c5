"""Helpers of distributions: numbers and tensors of one shape, probabilities and log-odds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final

from .. import Size, Tensor, broadcast_tensors, empty, finfo, get_default_dtype, log, log1p
from .. import int64 as _LONG
from .. import sigmoid as _sigmoid
from .. import tensor as _tensor
from .._core.grad_modes import enable_grad
from .._core.handle import Handle
from ..nn import functional as F

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: Final[float] = 0.57721566490153286060  # the Euler-Mascheroni constant

Number = (int, float, bool)


def _is_tensor_like(x: Any) -> bool:
    return isinstance(x, Handle) or hasattr(x, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Expand numbers and tensors to the shape that they have together, numbers as tensors."""
    if not all(_is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if not all(map(_is_tensor_like, values)):
        first = next((v for v in values if isinstance(v, Handle)), None)
        options = (
            {"dtype": get_default_dtype()}
            if first is None
            else {"dtype": first.dtype, "device": first.device}  # type: ignore[attr-defined]
        )
        values = tuple(v if _is_tensor_like(v) else _tensor(v, **options) for v in values)
    if all(type(v) is Tensor for v in values) and len({v.shape for v in values}) == 1:
        return values  # as they are: what is at rest stays at rest
    return tuple(broadcast_tensors(*values))


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Any:
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Turn logits into probabilities: by a sigmoid, or by a softmax over the last dimension."""
    return _sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Clamp probabilities to the open interval (0, 1)."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Turn probabilities into logits: log-odds if `is_binary`, else logarithms."""
    clamped = clamp_probs(probs)
    return log(clamped) - log1p(-clamped) if is_binary else log(clamped)


class lazy_property:
    """Compute an attribute when it is first read, with gradients, and keep it."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """Stand for a lazy property read from its class, which documentation takes for a property."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _tril_places(n: int, diag: int) -> tuple[list[int], list[int]]:
    """Rows and columns of a lower triangle, row by row; known without a look at a mask."""
    places = [(i, j) for i in range(n) for j in range(n) if j <= i + diag]
    return [i for i, _ in places], [j for _, j in places]


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Flatten the lower triangle of `D x D` matrices, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _tril_places(n, diag)
    return mat[..., _tensor(rows, dtype=_LONG), _tensor(columns, dtype=_LONG)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Make `D x D` matrices of the rows of their lower triangles."""
    length, offset = vec.shape[-1], 1 + 2 * diag
    # D + (D - 1) + ... from the diagonal on is the length; the root of that equation for D.
    n = (-offset + (offset**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    rows, columns = _tril_places(size, diag)
    matrix = vec.new_zeros(vec.shape[:-1] + Size((size, size)))
    matrix[..., _tensor(rows, dtype=_LONG), _tensor(columns, dtype=_LONG)] = vec
    return matrix
