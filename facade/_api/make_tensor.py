"""`testing.make_tensor`: random tensors of any dtype within bounds, as PyTorch's tests ask for."""

from __future__ import annotations

import math
import warnings
from typing import Any

from leafax.functional.program.op import TABLE

from .._core.dtypes import bool as bool_dtype
from .._core.dtypes import float32, int64
from .._core.number_limits import finfo, iinfo
from .._dispatch.record import apply
from .._ops.creation.factories import rand, randint
from .._storage.write import written_once


def make_tensor(
    *shape: Any, dtype: Any, device: Any, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    """Return a tensor of numbers drawn evenly from `[low, high)`.

    Args:
      shape: sizes, or one sequence of them.
      low, high: by default -9 and 9 (10 for integers), or what the dtype can hold of that.
      noncontiguous: every second element of a larger tensor's last dimension.
      exclude_zero: zeros become 1, or the smallest normal number.

    Raises:
      ValueError: for bounds that leave nothing, for integers that are to require grad, and for
        `noncontiguous` together with `memory_format`.

    >>> import leafax
    >>> leafax.testing.make_tensor(2, 3, dtype=leafax.float32, device="cpu").shape
    torch.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    floats = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not floats:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    first, last = _bounds(low, high, dtype)
    if floats:
        out = _evenly(sizes, first, last, dtype)
    else:
        out = randint(math.ceil(first), math.ceil(last), sizes, dtype=dtype)
    out = out.to(device)
    if noncontiguous:
        out = out[..., 1::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        out[out == 0] = finfo(dtype).tiny if floats else 1
    return out._set_requires_grad(True) if requires_grad else out


def _evenly(sizes: Any, low: float, high: float, dtype: Any) -> Any:
    real = dtype.to_real()
    wide = real if real.itemsize >= 4 else float32
    parts = [
        (rand(sizes, dtype=wide) * (high - low) + low).to(real) for _ in range(1 + dtype.is_complex)
    ]
    return written_once(apply(TABLE["complex"], *parts) if dtype.is_complex else parts[0])


def _bounds(low: float | None, high: float | None, dtype: Any) -> tuple[float, float]:
    floats = dtype.is_floating_point or dtype.is_complex
    if dtype is bool_dtype:
        least, most, usual = 0.0, 2.0, (0, 2)
    elif floats:
        info = finfo(dtype)
        least, most, usual = info.min, info.max, (-9, 9)
    else:
        whole = iinfo(dtype)
        least, most, usual = whole.min, whole.max + (dtype is not int64), (-9, 10)
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and floats:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    return min(max(low, least), most), min(max(high, least), most)
