"""A weight as its norms times its direction."""

from __future__ import annotations

from typing import Any

from ..._ops.composites.matrices import norm_except_dim


def norm_of(weight: Any, dim: int) -> Any:
    """Return the norms over all dims but `dim`, which broadcast; over all for -1."""
    return norm_except_dim(weight, 2, dim)


def with_norm(direction: Any, norm: Any, dim: int) -> Any:
    """Scale `direction` so that its norms over all dims but `dim` are `norm`."""
    return direction * (norm / norm_of(direction, dim))
