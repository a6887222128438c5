"""Checks of random ops: bounds that their dtype can hold, and parameters in range.

Each takes the op's own arguments. They look at Python numbers only: the op's body asks as long as
its numbers are such, the recorder (`Op.need`) before one becomes a runtime input.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...program.dtypes import (
    cpp_name,
    finfo,
    is_complex,
    is_floating,
    is_integral,
    real_of,
    scalar_name,
)


def is_static(number: Any) -> bool:
    """Return True if a number is Python's, no array that stands for one."""
    return isinstance(number, (bool, int, float))


def need_float(kernel: str, dtype: np.dtype) -> None:
    """Refuse integers, in the name of PyTorch's kernel."""
    if is_integral(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def _digits(dtype: np.dtype) -> int:
    return int(finfo(dtype).nmant) + 1


def _limits(dtype: np.dtype) -> tuple[float, float]:
    if dtype.name == "bool":
        return 0, 1
    if is_integral(dtype):
        found = np.iinfo(dtype)
        return max(int(found.min), -(1 << 63)), min(int(found.max), (1 << 63) - 1)
    return float(finfo(dtype).min), float(finfo(dtype).max)


def largest(dtype: np.dtype) -> int:
    """Return the largest integer up to which a dtype holds all."""
    return int(_limits(dtype)[1]) if is_integral(dtype) else 1 << _digits(dtype)


def need_integers(dtype: np.dtype, low: Any, high: Any) -> None:
    """Refuse integers on [low, high) that the dtype cannot hold; warn where it must round them.

    Args:
      high: None for all that the dtype holds exactly.
    """
    if not is_static(low) or not (high is None or is_static(high)):
        return
    if high is not None and low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if is_complex(dtype):
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    limits, last = _limits(dtype), largest(dtype)
    ends = (("from", low),) if high is None else (("from", low), ("to - 1", high - 1))
    for name, end in ends:
        if not limits[0] <= end <= limits[1]:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")
    if not is_integral(dtype):
        for name, end in ends:
            if abs(end) > last:
                _warn_of_rounding(name, dtype)
    if high is None and low > last:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted "
            f"to dtype, but got from={low} > to_inc={last}"
        )


def _warn_of_rounding(name: str, dtype: np.dtype) -> None:
    digits = _digits(dtype)
    warnings.warn(
        f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
        f"{cpp_name(dtype)} can support discrete uniform distribution only within this range. "
        "This warning will become an error in version 1.7 release, please fix the code in advance",
        UserWarning,
        stacklevel=2,
    )


def need_random(key: Any, input: Any, from_: Any = 0, to: Any = None) -> None:
    """Check the bounds of `random_`."""
    if is_complex(input.dtype) and to is None:
        kind = scalar_name(input.dtype)
        raise NotImplementedError(f"\"random_kernel_cpu\" not implemented for '{kind}'")
    need_integers(np.dtype(input.dtype), from_, to)


def need_randint(key: Any, low: Any, high: Any, size: Any, dtype: Any = None) -> None:
    """Check the bounds of `randint`."""
    need_integers(np.dtype(dtype or "int64"), low, high)


def need_room(n: int, dtype: np.dtype) -> None:
    """Refuse more integers than the dtype can tell apart, for `randperm`."""
    if dtype.name == "bool" or is_complex(dtype):
        raise NotImplementedError(f"\"randperm\" not implemented for '{scalar_name(dtype)}'")
    if is_integral(dtype):
        if n - 1 > np.iinfo(dtype).max:
            raise RuntimeError(f"value cannot be converted to type {dtype}_t without overflow")
    elif dtype.name != "bfloat16" and n > largest(dtype) + 1:  # which PyTorch does not look at
        limit = "2049" if dtype == np.float16 else f"2^{_digits(dtype)}+1"
        raise RuntimeError(f"n cannot be greater than {limit} for {scalar_name(dtype)} type.")


def need_probability(key: Any, input: Any, p: Any = 0.5) -> None:
    """Check the probability of `bernoulli`."""
    if is_static(p) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def need_std(key: Any, mean: Any, std: Any = 1.0, size: Any = None, dtype: Any = None) -> None:
    """Check the standard deviation of `normal`."""
    if is_static(std) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def need_fill_std(key: Any, input: Any, mean: Any = 0.0, std: Any = 1.0) -> None:
    """Check the standard deviation of `normal_`."""
    need_std(key, mean, std)


def need_uniform(key: Any, input: Any, from_: Any = 0.0, to: Any = 1.0) -> None:
    """Check the bounds of `uniform_`."""
    need_float("check_uniform_bounds", input.dtype)
    if not is_static(from_) or not is_static(to):
        return
    dtype = real_of(input.dtype)
    limit = float(finfo(dtype).max)
    for name, end in (("from", from_), ("to", to)):
        if not -limit <= end <= limit:  # NaN as well
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")
    if from_ > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}"
        )
    if to - from_ > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but "
            f"found to={to:g} and from={from_:g} which result in to-from to exceed the limit"
        )


def _need_continuous(name: str, dtype: Any, said: str) -> None:
    if not is_floating(dtype):
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {said}"
        )


def need_exponential(key: Any, input: Any, lambd: Any = 1.0) -> None:
    """Check the dtype and rate of `exponential_`."""
    _need_continuous("Exponential", input.dtype, scalar_name(input.dtype))
    if is_static(lambd) and not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")


def need_geometric(key: Any, input: Any, p: Any) -> None:
    """Check the dtype and probability of `geometric_`."""
    if is_static(p) and not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if input.dtype == bool or is_complex(input.dtype):
        kind = scalar_name(input.dtype)
        raise NotImplementedError(f"\"geometric_cpu\" not implemented for '{kind}'")


def need_cauchy(key: Any, input: Any, median: Any = 0.0, sigma: Any = 1.0) -> None:
    """Check the dtype and scale of `cauchy_`."""
    if is_static(sigma) and not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _need_continuous("Cauchy", input.dtype, cpp_name(input.dtype))


def need_log_normal(key: Any, input: Any, mean: Any = 1.0, std: Any = 2.0) -> None:
    """Check the dtype and standard deviation of `log_normal_`."""
    if is_static(std) and not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not is_floating(input.dtype):
        kind = scalar_name(input.dtype)
        raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{kind}'")
