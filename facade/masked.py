"""PyTorch's `torch.masked`: reductions and normalizations of the elements where a mask is True.

What the mask leaves out is replaced by the operation's identity; a slice without any element
gives that identity.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ._core import missing_names as _missing_names
from ._core.dtypes import of
from ._core.handle import Handle
from ._dispatch.record import apply
from ._ops.composites.reductions_with_forms import where
from ._ops.creation.factories import ones_like as _ones_like

_INF = float("inf")


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(input.dim()))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return (
        tuple(d % builtins.max(input.dim(), 1) for d in dims) if dims else tuple(range(input.dim()))
    )


def _cast(input: Any, dtype: Any, whole: bool = False) -> Any:
    if dtype is not None:
        return input.to(dtype)
    if whole and input._v.dtype.kind in "bui" and input._v.dtype != np.dtype("int64"):
        return input.to(of(np.dtype("int64")))
    return input


def _filled(input: Any, mask: Any, identity: Any) -> Any:
    return input if mask is None else where(mask.expand(input.shape), input, identity)


def _lowest(input: Any, sign: int) -> Any:
    dtype = input._v.dtype
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if sign > 0 else info.min)
    return sign * _INF


def _reduction(name: str, identity: Callable[[Any], Any], whole: bool) -> Callable[..., Any]:
    def fn(
        input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Any = None,
    ) -> Any:  # fmt: skip
        x = _cast(input, dtype, whole)
        x = _filled(x, mask, identity(x))
        dims = _dims(x, dim)
        if name != "prod":
            return (
                getattr(x, name)(dims, keepdim=builtins.bool(keepdim))
                if dims
                else (getattr(x, name)())
            )
        told = x.dtype if x.is_floating_point() else None  # as autocast has it, too
        for d in sorted(dims, reverse=True):
            x = x.prod(d, keepdim=builtins.bool(keepdim), dtype=told)
        return x if dims else x.prod(dtype=told)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"`{name}` of the elements where `mask` is True."
    return fn


sum = _reduction("sum", lambda x: 0, True)
prod = _reduction("prod", lambda x: 1, True)
amax = _reduction("amax", lambda x: _lowest(x, -1), False)
amin = _reduction("amin", lambda x: _lowest(x, 1), False)


def _position(name: str, sign: int) -> Callable[..., Any]:
    def fn(
        input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Any = None,
    ) -> Any:  # fmt: skip
        x = _cast(input, dtype)
        filled = _filled(x, mask, _lowest(x, sign))
        place = getattr(filled, name)(dim, keepdim=builtins.bool(keepdim))
        return place.to(x.dtype)  # an index in the data's dtype: PyTorch's way

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"`{name}` of the elements where `mask` is True."
    return fn


argmax, argmin = _position("argmax", -1), _position("argmin", 1)


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Sums up to each position of the elements where `mask` is True."""
    x = _cast(input, dtype, True)
    return _filled(x, mask, 0).cumsum(dim)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Products up to each position of the elements where `mask` is True."""
    x = _cast(input, dtype, True)
    return _filled(x, mask, 1).cumprod(dim)


def _count(x: Any, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Any:
    if mask is None:
        return _ones_like(x.detach()).sum(dims, keepdim=keepdim)
    counted = mask.expand(x.shape).to(of(np.dtype("int64")))
    return counted.sum(dims, keepdim=keepdim) if dims else counted.sum()


def mean(
    input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """Return the mean of the elements where `mask` is True; NaN where there is none."""
    keep = builtins.bool(keepdim)
    x = _cast(input, dtype)
    dims = _dims(x, dim)
    return sum(x, dims, keepdim=keep, mask=mask) / _count(x, dims, keep, mask)


def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the lower median of the elements where `mask` is True; NaN where there is none."""
    x = _cast(input, dtype)
    if not x.is_floating_point():
        raise ValueError(f"input must be a tensor of floating point dtype (got {x.dtype})")
    if x.dim() == 0:
        return x if mask is None else where(mask, x, float("nan"))
    return _filled(x, mask, float("nan")).nanmedian(dim, keepdim).values


def norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool | None = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the vector norm of the elements where `mask` is True."""
    x = _filled(_cast(input, dtype), mask, _INF if ord == -_INF else 0)
    dims = _dims(x, dim)
    return apply(TABLE["linalg.vector_norm"], x, ord, dims, builtins.bool(keepdim), None)


def _spread(
    input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any, dtype: Any, mask: Any
) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = 0.0 if unbiased is not None and not unbiased else 1.0
    less = less if correction is None else float(correction)
    x = _cast(input, dtype)
    x = x if x.is_floating_point() or x.is_complex() else x.float()
    dims = _dims(x, dim)
    count = _count(x, dims, True, mask)
    center = sum(x, dims, keepdim=True, mask=mask) / count
    off = x - center
    square = off * off.conj() if x.is_complex() else off * off
    total = sum(square, dims, keepdim=builtins.bool(keepdim), mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    count = count.real if count.is_complex() else count
    if less:
        count = count.to((total.real if total.is_complex() else total).dtype) - less
        count = where(count < 0, count.new_zeros(()), count)
    return total / count


def var(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the variance of the elements where `mask` is True."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the standard deviation of the elements where `mask` is True."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """`softmax` among the elements where `mask` is True."""
    return _filled(_cast(input, dtype), mask, -_INF).softmax(dim)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """`log_softmax` among the elements where `mask` is True."""
    return _filled(_cast(input, dtype), mask, -_INF).log_softmax(dim)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """`softmin` among the elements where `mask` is True."""
    return (-_filled(_cast(input, dtype), mask, _INF)).softmax(dim)


def normalize(
    input: Any, ord: Any, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """Divide by the norm of the elements where `mask` is True, the others becoming 0."""
    x = _cast(input, dtype)
    scale = norm(x, ord, dim, keepdim=True, mask=mask).clamp_min(eps)
    return _filled(x, mask, 0) / scale


def logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """`logsumexp` of the elements where `mask` is True."""
    given = _cast(input, dtype)
    x = given if given.is_floating_point() or given.is_complex() else given.float()
    made = _filled(x, mask, -_INF).logsumexp(_dims(x, dim), builtins.bool(keepdim))
    return made.to(given.dtype)  # integers are cut to integers, as in PyTorch


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """`logaddexp` of two tensors, each -inf where its mask is False."""
    x, y = _cast(input, dtype), _cast(other, dtype)
    assert isinstance(x, Handle) and isinstance(y, Handle)
    return _filled(x, input_mask, -_INF).logaddexp(_filled(y, other_mask, -_INF))  # type: ignore[attr-defined]


_ops = sys.modules[__name__]  # where PyTorch keeps them, and its examples call them

__getattr__ = _missing_names.missing("leafax.masked", _missing_names.MASKED.get)
