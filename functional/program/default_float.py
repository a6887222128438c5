"""The dtype that Python floats become, for all threads and for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_FLOAT32 = np.dtype("float32")


class _DefaultFloat(threading.local):
    """The thread's own default: None but while it evaluates what was recorded under another."""

    own: np.dtype | None = None


_default_float = [_FLOAT32]
_thread = _DefaultFloat()


def default_float() -> np.dtype:
    """Return the dtype that Python floats become: `torch.get_default_dtype()`."""
    return _default_float[0] if _thread.own is None else _thread.own


def set_default_float(dtype: Any) -> None:
    """Set what `default_float` returns to all threads."""
    _default_float[0] = np.dtype(dtype)


@contextmanager
def as_default_float(dtype: np.dtype) -> Iterator[None]:
    """Evaluate what was recorded when `dtype` was the default."""
    before, _thread.own = _thread.own, dtype
    try:
        yield
    finally:
        _thread.own = before
