"""`torch.testing.assert_close`: tensors, numbers and trees of them, equal up to rounding."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from ._api.make_tensor import make_tensor as make_tensor
from ._core.dtypes import Size as _Size
from ._core.handle import Handle
from ._ops.calls.promotion import promote_types as _promote_types
from ._ops.creation.from_data import as_tensor as _as_tensor

# (relative, absolute) tolerances by dtype, as PyTorch has them; 0 for all others.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_HALVES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_NUMBERS = (int, float, complex, np.number)
Message = str | Callable[[str], str] | None


class _Mismatch(Exception):
    """Tell what differs, at which place of the tree, and the error that it is."""

    def __init__(
        self, text: str, place: tuple[Any, ...] = (), kind: type[Exception] = AssertionError
    ) -> None:
        self.text, self.place, self.kind = text, place, kind


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: Message = None,
) -> None:  # fmt: skip
    """Raise if `|actual - expected| > atol + rtol * |expected|` anywhere.

    Args:
      actual, expected: tensors, NumPy arrays, numbers, or sequences and mappings of them.
      rtol, atol: both or none of them; by default they follow from the dtypes.
      equal_nan: whether NaN equals NaN.
      check_device, check_dtype, check_stride: whether these must agree, too.
      msg: stands for the error's message, or makes it from the one that there would be.

    Raises:
      AssertionError: they are not close.
      ValueError: only one of the tolerances was given.
      TypeError: they cannot be compared.

    >>> import leafax
    >>> leafax.testing.assert_close(leafax.ones(2), leafax.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    checks = {"device": check_device, "dtype": check_dtype, "stride()": check_stride}
    try:
        _compare(actual, expected, (rtol, atol), equal_nan, checks)
    except _Mismatch as found:
        text = found.text
        if found.place:
            where = "".join(f"[{p!r}]" for p in found.place)
            text += f"\n\nThe failure occurred for item {where}"
        if found.kind is AssertionError:
            text = msg if isinstance(msg, str) else msg(text) if callable(msg) else text
        raise found.kind(text) from None


def _compare(a: Any, b: Any, given: Any, equal_nan: bool, checks: dict[str, bool]) -> None:
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        if len(a) != len(b):
            raise _Mismatch(f"The length of the sequences mismatch: {len(a)} != {len(b)}")
        for place, (x, y) in enumerate(zip(a, b, strict=True)):
            _inside(place, x, y, given, equal_nan, checks)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            raise _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(set(b) - set(a))}\n"
                f"Additional keys in the actual mapping: {sorted(set(a) - set(b))}"
            )
        for key in a:
            _inside(key, a[key], b[key], given, equal_nan, checks)
    elif a is None or b is None:
        if a is not b:
            raise _Mismatch(f"None mismatch: {a} is not {b}")
    elif isinstance(a, (bool, np.bool_)) and isinstance(b, (bool, np.bool_)):
        if a != b:
            raise _Mismatch(f"Booleans mismatch: {a} is not {b}")
    elif isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        a, b = (x.item() if isinstance(x, np.number) else x for x in (a, b))
        if checks["dtype"] and type(a) is not type(b):
            raise _Mismatch(f"The (d)types do not match: {type(a)} != {type(b)}.")
        kinds = [{int: "int64", float: "float64"}.get(type(x), "complex128") for x in (a, b)]
        _numbers(a, b, _tolerances(given, kinds), equal_nan)
    elif any(isinstance(a, kind) and isinstance(b, kind) for kind in (Handle, np.ndarray)):
        _tensors(a, b, given, equal_nan, checks)
    else:
        raise _unlike(a, b)


def _unlike(a: Any, b: Any) -> _Mismatch:
    text = f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}."
    return _Mismatch(text, kind=TypeError)


def _inside(place: Any, a: Any, b: Any, *rest: Any) -> None:
    try:
        _compare(a, b, *rest)
    except _Mismatch as found:
        raise _Mismatch(found.text, (place, *found.place), found.kind) from None


def _tolerances(given: Any, dtypes: list[str]) -> tuple[float, float]:
    if given[0] is not None:
        return given  # type: ignore[no-any-return]
    pairs = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _allowed(tolerance: float, equal: bool) -> str:
    return "" if equal else f" (up to {tolerance} allowed)"


def _numbers(a: Any, b: Any, tolerances: tuple[float, float], equal_nan: bool) -> None:
    rtol, atol = tolerances
    both_nan = cmath.isnan(a) and cmath.isnan(b)
    off = abs(a - b)
    if a == b or (equal_nan and both_nan) or (math.isfinite(off) and off <= atol + rtol * abs(b)):
        return
    equal = rtol == atol == 0
    relative = off / abs(b) if b else math.inf
    raise _Mismatch(
        f"Scalars are not {'equal' if equal else 'close'}!\n\nExpected {b} but got {a}.\n"
        f"Absolute difference: {off}{_allowed(atol, equal)}\n"
        f"Relative difference: {relative}{_allowed(rtol, equal)}"
    )


def _facts(t: Any) -> tuple[np.ndarray, dict[str, Any]]:
    facts = {"dtype": t.dtype, "device": t.device, "stride()": t.stride()}
    return np.asarray(t.detach().jax()), facts


def _wide(a: Any, b: Any) -> np.dtype:
    """Return the dtype that numbers of two dtypes are compared in."""
    kind = _promote_types(a, b).np
    if kind.name in _HALVES:
        return np.dtype("float32")
    return np.dtype("int64") if kind.kind in "biu" else kind


def _tensors(a: Any, b: Any, given: Any, equal_nan: bool, checks: dict[str, bool]) -> None:
    try:
        (x, of_a), (y, of_b) = _facts(_as_tensor(a)), _facts(_as_tensor(b))
    except (TypeError, ValueError):  # arrays of texts, or those that run backwards
        raise _unlike(a, b) from None
    if x.shape != y.shape:
        shapes = f"{_Size(x.shape)!r} != {_Size(y.shape)!r}"
        raise _Mismatch(f"The values for attribute 'shape' do not match: {shapes}.")
    for name in ("device", "dtype", "stride()"):
        if checks[name] and of_a.get(name) != of_b.get(name):
            raise _Mismatch(
                f"The values for attribute '{name}' do not match: "
                f"{of_a.get(name)} != {of_b.get(name)}."
            )
    names = [of_a["dtype"].np.name, of_b["dtype"].np.name]
    rtol, atol = _tolerances(given, names)
    wide = _wide(of_a["dtype"], of_b["dtype"])
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        off = np.abs(x - y)
        limit = atol + rtol * np.abs(y)
        close = x == y
        if rtol or atol:  # differences of integers can wrap around
            close |= np.isfinite(off) & (off <= limit)
        if equal_nan:
            close |= np.isnan(x) & np.isnan(y)
        if close.all():
            return
        if x.ndim == 0:
            _numbers(x.item(), y.item(), (rtol, atol), equal_nan)
        off, relative = np.where(close, 0, off), np.where(close, 0, off / np.abs(y))
        if x.dtype.kind in "iu" or wide != np.dtype("float64"):  # as PyTorch's division rounds it
            halves = [n for n in names if n in ("bfloat16", "float16")]
            rounded = _HALVES[halves[0]] if len(halves) == 2 else np.float32
            relative = relative.astype(rounded).astype(np.float64)
    equal = rtol == atol == 0
    bad = int((~close).sum())

    def greatest(name: str, of: np.ndarray, tolerance: float) -> str:
        place = np.unravel_index(np.argmax(of), of.shape)
        at = tuple(int(i) for i in place)
        value = of[place]
        return (
            f"Greatest {name} difference: {value.item() if hasattr(value, 'item') else value} at "
            f"index {at}{_allowed(tolerance, equal)}"
        )

    raise _Mismatch(
        f"Tensor-likes are not {'equal' if equal else 'close'}!\n\n"
        f"Mismatched elements: {bad} / {x.size} ({100 * bad / x.size:.1f}%)\n"
        f"{greatest('absolute', off, atol)}\n{greatest('relative', relative, rtol)}"
    )


_end_at_callers(__name__)
