"""Python objects of all processes, which go through collectives as pickles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .collectives import gather_arrays
from .group import ProcessGroup

_SHORTEST = 256  # bytes; lengths are rounded up to powers of two, so that few programs are compiled


def gather_objects(group: ProcessGroup, obj: Any, what: str) -> list[Any]:
    """Return the objects of all processes of a group, in order.

    Args:
      what: the collective's name, for errors.
    """
    if group.size() == 1:
        return [obj]
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    (lengths,) = gather_arrays(group, [np.array([data.size], np.int64)], what)
    longest = max(_SHORTEST, 1 << int(lengths.max() - 1).bit_length())
    padded = np.zeros(longest, np.uint8)
    padded[: data.size] = data
    (rows,) = gather_arrays(group, [padded], what)
    return [
        pickle.loads(row[: int(length)].tobytes())
        for row, (length,) in zip(rows, lengths, strict=True)
    ]
