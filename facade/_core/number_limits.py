"""`finfo` and `iinfo`: the limits of number types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from leafax.functional.program.dtypes import default_float

from .dtypes import as_dtype, of

_TYPE = "'type' (position 1)"


class _Info:
    """Equal for equal dtypes."""

    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Info):
    """Limits of a floating point dtype; for a complex dtype, of its real and imaginary parts.

    Args:
      type: the dtype, the default one if left out.

    Attributes:
      bits: that a number takes.
      eps: the difference between 1 and the next larger number.
      max, min: the largest and the smallest (most negative) number.
      tiny, smallest_normal: the smallest positive number with full precision.
      resolution: 10 to the minus digits that are exact in decimals.
      dtype: its name.

    Raises:
      TypeError: not a floating point dtype.

    >>> import leafax
    >>> leafax.finfo(leafax.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        kind = of(default_float()) if type is None else as_dtype("finfo", type, _TYPE)
        if not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        real = kind.to_real() if kind.is_complex else kind
        info: Any = ml_dtypes.finfo(real.np)  # type: ignore[no-untyped-call]
        self.bits: int = info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"1e-{info.precision}")
        self.dtype = real.np.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Info):
    """Limits of an integer dtype.

    Args:
      type: the dtype.

    Attributes:
      bits: that a number takes.
      max, min: the largest and the smallest number.
      dtype: its name.

    Raises:
      TypeError: not an integer dtype.

    >>> import leafax
    >>> leafax.iinfo(leafax.int8).max
    127
    """

    def __init__(self, type: Any) -> None:
        type = as_dtype("iinfo", type, _TYPE)
        if type.is_floating_point or type.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if type.np.kind == "b":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        info = np.iinfo(type.np)
        self.bits, self.max, self.min = info.bits, int(info.max), int(info.min)
        self.dtype = type.np.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
