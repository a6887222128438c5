"""Casts of leaves that autocast keeps for their next use, by thread."""

from __future__ import annotations

import threading
from typing import Any


class _Casts(threading.local):
    """Hold the casts of a thread.

    Attributes:
      kept: by the leaf's id, the dtype and the grad mode: a reference to the leaf, and its cast.
      enabled: casts are kept.
    """

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}
        self.enabled = True


casts = _Casts()
