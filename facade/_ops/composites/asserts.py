"""Checks of a program's own conditions, and the arithmetic that PyTorch offers for sizes.

PyTorch's work on symbolic numbers too; here there are none, so these are Python's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._core.handle import Handle


def _assert(condition: Any, message: str) -> None:
    """Assert as Python's `assert` does; a tensor's value is observed."""
    assert condition, message


def _check_with(error: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raise `error` unless `cond` is true; a message is made only then.

    Raises:
      TypeError: `cond` is no bool, or `message` cannot be called.
    """
    if not isinstance(cond, bool):
        if isinstance(cond, Handle):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use "
                "torch._check_tensor_all() to assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error(
            "Expected cond to be True, but got False. (Could this error message be improved? If "
            "so, please report an enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


def _checker(error: type[Exception], name: str) -> Callable[..., None]:
    def check(cond: Any, message: Callable[[], Any] | None = None) -> None:
        _check_with(error, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise `{error.__name__}` unless `cond` is true, with what `message()` says."
    return check


_check = _checker(RuntimeError, "_check")
_check_index = _checker(IndexError, "_check_index")
_check_value = _checker(ValueError, "_check_value")
_check_type = _checker(TypeError, "_check_type")
_check_not_implemented = _checker(NotImplementedError, "_check_not_implemented")


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raise `RuntimeError` unless `i` may be a size, of at most `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise `RuntimeError` unless all elements are true; runs the program."""
    if not isinstance(cond, Handle):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond._v.dtype != bool:  # type: ignore[attr-defined]
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")  # type: ignore[attr-defined]
    _check(bool(cond.all().item()), message)  # type: ignore[attr-defined]


def sym_not(a: Any) -> Any:
    """Return `not a`."""
    return not a


def sym_int(a: Any) -> int:
    """Turn `a` into an int, rounded towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """Turn `a` into a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number; a float if one of both is."""
    return _joined(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number; a float if one of both is."""
    return _joined(min(a, b), a, b)


def _joined(found: Any, a: Any, b: Any) -> Any:
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t if b else f`, for a bool and two values of one type."""
    if not (isinstance(b, bool) and type(t) is type(f)):
        raise AssertionError(f"expected a bool and two of one type, got {b}, {t} and {f}")
    return t if b else f


def sym_sum(args: Any) -> Any:
    """Return the sum of numbers."""
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """Return the square root of a number."""
    return math.sqrt(a)
