"""The dtype that Python floats become, and how exact products of float32 numbers are.

Both are the same for all threads; one that evaluates what was recorded under others has its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np


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


def default_float() -> np.dtype:
    """Return the dtype that Python floats become: `torch.get_default_dtype()`."""
    return _default_float[0] if _thread.numerics is None else _thread.numerics.floats


def set_default_float(dtype: Any) -> None:
    """Set what `default_float` returns to all threads."""
    set_numerics(floats=np.dtype(dtype))
