"""Warnings about numbers: imaginary parts that a cast drops, variances of too few elements."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.handle import Handle
from .._core.warn_once import drops_imaginary, warn_once
from .parser import ALIASES

NAMES = ("input", *ALIASES["input"])  # of the first argument
_COMPLEX = np.dtype("complex128")


# Truth is worked out in the operands' common dtype, and cast from that to the target's.
ANSWERS = frozenset({"eq", "ne", "logical_and", "logical_or", "logical_xor"})


def answers(t: Any, operands: Any) -> None:
    """Warn as `drops_imaginary` does of operands that were cast to the dtype of `t` at first."""
    for x in operands:
        if isinstance(x, complex):
            drops_imaginary(_COMPLEX, t._v.dtype, t._v.numel)
        elif isinstance(x, Handle):
            drops_imaginary(x._v.dtype, t._v.dtype, t._v.numel)  # type: ignore[attr-defined]


#: Reductions that cast what they are given to `dtype=` first.
REDUCED = ("sum", "prod", "mean", "cumsum", "cumprod")


def casts_first(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of `REDUCED` that warns where its cast drops imaginary parts."""

    @functools.wraps(fn)
    def reduced(*args: Any, **kwargs: Any) -> Any:
        out = fn(*args, **kwargs)
        if kwargs.get("dtype") is not None and isinstance(out, Handle):
            input = args[0] if args else next(kwargs[n] for n in NAMES if n in kwargs)
            drops_imaginary(input._v.dtype, out._v.dtype, input._v.numel)
        return out

    return reduced


def enough_elements(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `var` or its like, which warns where no degree of freedom is left."""

    @functools.wraps(fn)
    def spread(*given: Any, **kwargs: Any) -> Any:
        out = fn(*given, **kwargs)
        input = given[0] if given else next(kwargs[n] for n in NAMES if n in kwargs)
        args = given[1:]
        result = out if name in ("var", "std") else out[0]
        numbers = input.numel() // result.numel() if result.numel() else 0
        few = _correction(args, kwargs) >= numbers
        for _ in range(few * (2 if input.is_complex() else 1)):  # each part is a call
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less "
                "than the reduction factor (input numel divided by output numel).",
                UserWarning,
                stacklevel=2,
            )
        return out

    return spread


def names_its_dim(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `cross`, which warns where it has to look for the dim."""

    @functools.wraps(fn)
    def cross(*args: Any, **kwargs: Any) -> Any:
        if (args[2] if len(args) > 2 else kwargs.get("dim", kwargs.get("axis"))) is None:
            warn_once(
                "Using torch.cross without specifying the dim arg is deprecated.\nPlease either "
                "pass the dim explicitly or simply use torch.linalg.cross.\nThe default value of "
                "dim will change to agree with that of linalg.cross in a future release."
            )
        return fn(*args, **kwargs)

    return cross


def _correction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Return the number that is taken off the count: 1 unless the caller says something else."""
    if kwargs.get("correction") is not None:
        return float(kwargs["correction"])
    unbiased = kwargs.get("unbiased")
    if args and type(args[0]) is bool:
        unbiased = args[0]
    elif len(args) > 1:
        unbiased = args[1]
    return 0.0 if unbiased is False else 1.0


SPREAD = ("var", "std", "var_mean", "std_mean")
