"""Exceptions on their way from a worker to the process that loads."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn


class KeyErrorMessage(str):
    """A message that stays readable where `KeyError` shows its `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The type and the traceback of an exception, to be raised again elsewhere.

    Args:
      exc_info: as `sys.exc_info` gives it; None for the exception that is being handled.
      where: "in DataLoader worker process 0".
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        info = exc_info or sys.exc_info()
        self.exc_type = info[0]
        self.exc_msg = "".join(traceback.format_exception(*info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type that tells the original traceback."""
        kind: Any = self.exc_type
        text = f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if getattr(kind, "message", None) and kind is not KeyError:
            raise kind(message=text)
        try:
            exception = kind(KeyErrorMessage(text) if kind is KeyError else text)
        except Exception:  # it takes other arguments
            raise RuntimeError(text) from None
        try:
            raise exception
        finally:
            del exception  # else it would hold this frame, and with it the loader's workers
