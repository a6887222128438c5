"""Floats of 8 bits: how PyTorch rounds to those that have no infinity or no sign."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, f"float8_{kind}"))
    for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
)
_E4M3FN, _E8M0FNU = FLOAT8[0], FLOAT8[4]
_MOST = 448.0  # of e4m3fn, where PyTorch's conversion stops
_LEAST = 2.0**-127  # of e8m0fnu, which has no zero


def within_range(x: Any, dtype: np.dtype[Any]) -> Any:
    """Bring floats to where a cast to `dtype` gives PyTorch's numbers.

    Args:
      x: an array of floats.
      dtype: what it is to be cast to.
    """
    if dtype == _E4M3FN:
        return jnp.clip(x, -_MOST, _MOST)
    if dtype == _E8M0FNU:
        wide = jnp.abs(x).astype(np.float32)
        return jnp.where(wide == 0, jnp.asarray(_LEAST, np.float32), wide)
    return x
