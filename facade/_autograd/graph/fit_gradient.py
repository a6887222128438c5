"""Gradients in the shape and dtype of what they are gradients of."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._core.dtypes import of
from ..._rules.error_texts import COMPLEX_FOR_REAL, invalid_gradient
from ..._storage.shared_storage import of_mode
from ..._storage.write import written_once
from ..._tracing.inputs import from_array


class Kind(NamedTuple):
    """A shape and a dtype."""

    shape: Any
    dtype: Any


def fit(name: str, i: int, grad: Any, kind: Any) -> Any:
    """Sum and cast `grad` to an input's shape and dtype; PyTorch's error if it cannot be."""
    have, want = tuple(grad.shape), tuple(kind.shape)
    if have != want:
        lead = len(have) - len(want)
        if lead < 0 or any(w not in (1, h) for h, w in zip(have[lead:], want, strict=True)):
            raise RuntimeError(invalid_gradient(name, i, have, want))
        grad = grad.sum_to_size(want)
    if grad._v.dtype != kind.dtype:
        real = grad._v.dtype.kind in "fV"  # V: bfloat16
        if not real and (grad._v.dtype.kind == "c") != (kind.dtype.kind == "c"):
            raise RuntimeError(COMPLEX_FOR_REAL)
        grad = grad.to(of(kind.dtype))
    return grad


def zeros(kind: Any) -> Any:
    """Make a tensor of zeros of a value's shape and dtype."""
    with jax.enable_x64(True):
        return of_mode(from_array(jnp.zeros(tuple(kind.shape), kind.dtype)))


def materialized(kind: Any) -> Any:
    """Make zeros for a gradient that did not arrive, which PyTorch writes into new memory."""
    made = zeros(kind)
    return made if made._v.inference else written_once(made)
