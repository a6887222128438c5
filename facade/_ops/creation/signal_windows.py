"""PyTorch's `torch.signal.windows`: weights that fade at the ends of a signal."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float

from ..._core.dtypes import of
from .from_arrays import from_numpy

_OPTIONS = ("layout", "device")


def _window(
    name: str, M: int, sym: bool, dtype: Any, options: dict[str, Any],  # noqa: N803
    values: Callable[[np.ndarray, int], np.ndarray], weighs_one: bool = False,
) -> Any:  # fmt: skip
    """Return a window of `M` points of a function of positions and the last position.

    Args:
      weighs_one: also a single point has the function's value, not 1.
    """
    requires_grad = options.pop("requires_grad", False)
    M = M if isinstance(M, (int, float)) else operator.index(M)  # noqa: N806
    for key in options:
        if key not in _OPTIONS:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    np_dtype = numpy_dtype(dtype)
    _check(name, M, np_dtype, options.get("layout"))
    if M == 0:
        made = np.zeros(0)
    elif M == 1 and not weighs_one:
        made = np.ones(1)
    else:
        made = values(np.arange(M, dtype=np.float64), M - 1 if sym else M)
    out = from_numpy(np.asarray(made, np.float64)).to(of(np_dtype))
    return out._set_requires_grad(True) if requires_grad else out


def numpy_dtype(dtype: Any) -> Any:
    return default_float() if dtype is None else dtype.np


def _check(name: str, M: int, np_dtype: Any, layout: Any) -> None:  # noqa: N803
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if np_dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {of(np_dtype)}")


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    **options: Any,  # noqa: N803
) -> Any:
    """Return a sum of cosines with weights `a`, of alternating sign."""
    _check("general_cosine", M, numpy_dtype(dtype), options.get("layout"))
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, sym, dtype, options, lambda t, n: sum(
        (-1) ** k * w * np.cos(2 * np.pi * k * t / n) for k, w in enumerate(weights)
    ))  # fmt: skip


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    **options: Any,  # noqa: N803
) -> Any:
    """Make a window of `alpha - (1 - alpha) * cos(...)`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, **options)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Return the Hamming window."""
    return general_hamming(M, sym=sym, dtype=dtype, **options)


def hann(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Return the Hann window."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, **options)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Return the Blackman window."""
    _check("blackman", M, numpy_dtype(dtype), options.get("layout"))
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, **options)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Return the Nuttall window."""
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=weights, sym=sym, dtype=dtype, **options)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Return a triangle with zeros at its ends."""
    return _window("bartlett", M, sym, dtype, options, lambda t, n: 1 - np.abs(2 * t / n - 1))


def cosine(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Any:  # noqa: N803
    """Make a window of half a sine."""
    return _window(
        "cosine", M, sym, dtype, options, lambda t, n: np.sin(np.pi * (t + 0.5) / (n + 1))
    )


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,  # noqa: N803
    dtype: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Make a window of `exp(-|t - center| / tau)`."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, sym, dtype, options, lambda t, n: np.exp(
        -np.abs(t - (n / 2 if center is None else center)) / tau
    ), center is not None)  # fmt: skip


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    **options: Any,  # noqa: N803
) -> Any:
    """Return a normal density, 1 in the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(
        "gaussian", M, sym, dtype, options, lambda t, n: np.exp(-(((t - n / 2) / std) ** 2) / 2)
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    **options: Any,  # noqa: N803
) -> Any:
    """Return the Kaiser window."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, dtype, options, lambda t, n: np.i0(
        beta * np.sqrt(np.maximum(1 - (2 * t / n - 1) ** 2, 0))
    ) / np.i0(beta))  # fmt: skip
