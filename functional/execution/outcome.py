"""Outcomes: what one run of a program returns."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """The results of one run of a plan."""

    outputs: tuple[Any, ...]
    residuals: tuple[Any, ...]
    faults: Any  # what checks found, an array as `lower` gives it; None without checks
    how: str  # "compiled", "cached", "op by op" or "in pieces"
    seconds: float  # spent compiling and dispatching
    why: str = ""  # it did not run whole, or not all of it together
