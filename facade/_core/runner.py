"""The interface of what runs programs, for the layers below it.

Recording may find that the program is too long, or that another thread has a tensor's value
pending. `_runtime`, which is above it, installs itself as `Local.runner` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Runner(NamedTuple):
    """The functions that run programs; `_runtime` provides them.

    Attributes:
      cut: runs the thread's pending program, for a reason that `explain()` shows.
      observe: the array of a tensor, running what it takes, for a reason.
      compute: the array of a tensor, leaving the program that it is in as it is.
      compute_elsewhere: the same of a tensor that another thread has pending.
    """

    cut: Callable[[str], Any]
    observe: Callable[[Any, str], Any]
    compute: Callable[[Any], Any]
    compute_elsewhere: Callable[[Any], Any]
