"""The dtype that Python floats become, and how exact products of float32 numbers are.

Both are the same for all threads; one that evaluates what was recorded under others has its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

#: Dtypes whose products have a precision.
SINGLE = frozenset({np.dtype("float32"), np.dtype("complex64")})
_NO_CONTEXT = nullcontext()


class Numerics(NamedTuple):
    """One object a combination, so that it is compared by identity.

    Attributes:
      floats: the dtype that Python floats become.
      matmul, conv, rnn: precisions of products of float32 numbers, as JAX names them: "highest",
        "high" (TF32, or three passes of bfloat16) or "default" (the fastest that a device has).
      opaque: the precision in functions of JAX that are called as ops; None is JAX's own setting.
    """

    floats: np.dtype
    matmul: str
    conv: str
    rnn: str
    opaque: str | None


class _Own(threading.local):
    """The thread's own: None but while it evaluates what was recorded under others."""

    numerics: Numerics | None = None


_FIRST = Numerics(np.dtype("float32"), "highest", "high", "high", None)
_known = {_FIRST: _FIRST}
_now = [_FIRST]
_default_float = [_FIRST.floats]  # read for each op on the host
_thread = _Own()


def numerics() -> Numerics:
    """Return what ops are recorded under."""
    return _now[0] if _thread.numerics is None else _thread.numerics


def set_numerics(**fields: Any) -> None:
    """Set fields of what `numerics` returns to all threads."""
    wanted = _now[0]._replace(**fields)
    _now[0] = _known.setdefault(wanted, wanted)
    _default_float[0] = _now[0].floats


@contextmanager
def evaluated_under(recorded: Numerics) -> Iterator[None]:
    """Evaluate what was recorded under these."""
    before, _thread.numerics = _thread.numerics, recorded
    try:
        yield
    finally:
        _thread.numerics = before


def products_as(precision: str | None, arrays: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a block in which products are so exact, if one of the arrays is single precision.

    Args:
      precision: JAX's name of it; None leaves it to JAX.
    """
    if precision is None or not any(getattr(x, "dtype", None) in SINGLE for x in arrays):
        return _NO_CONTEXT
    return jax.default_matmul_precision(precision)


def default_float() -> np.dtype:
    """Return the dtype that Python floats become: `torch.get_default_dtype()`."""
    return _default_float[0] if _thread.numerics is None else _thread.numerics.floats


def set_default_float(dtype: Any) -> None:
    """Set what `default_float` returns to all threads."""
    set_numerics(floats=np.dtype(dtype))
