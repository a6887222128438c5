"""Data-dependent errors: flags computed beside the outputs, raised when next observed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .host_transfer import raw
from .trie import local


class Pending(NamedTuple):
    """The results of a run's checks that nobody has looked at yet.

    Attributes:
      found: an array `(2, checks)` as `functional.lowering.lower` gives it.
      sites: where the checks stand, and what they say.
    """

    found: Any
    sites: Any


def check_faults() -> None:
    """Raise the first data-dependent error of the runs so far, with the user's line."""
    while local.faults:
        found, sites = local.faults.popleft()
        if not any(raw(found)):
            continue
        bad, values = np.asarray(found)
        first = int(np.argmax(bad))
        site = sites[first]
        local.faults.clear()
        message = site.message.format(value=int(values[first]))
        error = site.error(message)
        if site.where is not None:
            error.add_note(f"recorded at {site.where[0]}:{site.where[1]}")
        raise error


def check_ready_faults() -> None:
    """Raise the errors of runs that are over, without waiting for those that are not."""
    for pending in local.faults:
        if hasattr(pending.found, "is_ready") and not pending.found.is_ready():
            return
    check_faults()
