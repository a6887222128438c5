"""Covariances and correlations of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float, scalar_name
from leafax.functional.program.op import TABLE

from ..._core.dtypes import of
from ..._core.handle import Handle
from ..._core.warn_once import warn
from ..._dispatch.record import apply
from ..._signatures.wrap_composites import parsed


def _weights(name: str, x: Any, count: int, what: str, kinds: str) -> Any:
    """Check weights for `cov`; only a run can tell whether they are negative."""
    if x is None:
        return None
    if x.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{x.dim()} dimensions"
        )
    if x._v.dtype.kind not in kinds:
        raise RuntimeError(
            f"cov(): expected {name} to have {what} dtype but got {name} with "
            f"{scalar_name(x._v.dtype)} dtype"
        )
    if x.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {x.numel()} != {count}"
        )
    return apply(TABLE["_cov_weights"], x, name)


@parsed
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariance matrix of variables (rows) from observations (columns)."""
    if input.dim() > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    if input._v.dtype == np.dtype(bool):
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.view(1, -1) if input.dim() < 2 else input
    fweights = _weights("fweights", fweights, x.shape[1], "integral", "iu")
    aweights = _weights("aweights", aweights, x.shape[1], "floating point", "fV")
    if x._v.dtype.kind in "iu":
        x = x.to(of(default_float()) if aweights is None else aweights.dtype)
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    count: Any = x.shape[1]
    total: Any = count if weights is None else weights.sum()
    if weights is None:
        mean = (x.sum(1) / count).unsqueeze(1)
    else:
        mean = ((x * weights).sum(1) / total).unsqueeze(1)
    if aweights is not None and correction:
        factor: Any = total - correction * (weights * aweights).sum() / total
    else:
        factor = total - correction
    if not isinstance(factor, Handle) and factor <= 0:  # weights would have to be observed
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations."
        )
    factor = factor.clamp(min=0) if isinstance(factor, Handle) else max(0, factor)
    x = x - mean
    y = x if weights is None else x * weights
    return (y.mm(x.t().conj()) / factor).squeeze()


@parsed
def corrcoef(input: Any) -> Any:
    """Return the matrix of correlation coefficients of variables (rows)."""
    if input.dim() > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    d = c.diagonal()
    d = (d.real if d.is_complex() else d).sqrt()
    c = c / d.view(-1, 1) / d.view(1, -1)
    if not c.is_complex():
        return c.clip(-1, 1)
    return apply(TABLE["complex"], c.real.clip(-1, 1), c.imag.clip(-1, 1))
