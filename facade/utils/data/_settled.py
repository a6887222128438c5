"""Tensors in a dataset that are computed before samples are taken from it.

A tensor that is still pending would have each of its rows recorded, in the training step's
program; and a worker has no program but what its parent left it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ..._core.run_log import LOADER
from ..._runtime.observation import observe
from ..._storage.host_arrays import data_of
from ..._tensor.tensor import Tensor

_MOST = 2000  # objects that are looked at
_PLAIN = (int, float, str, bytes, type(None))


def settle(*roots: Any) -> None:
    """Compute the tensors that datasets, functions and their attributes hold."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < _MOST:
        x = waiting.pop()
        if isinstance(x, _PLAIN) or id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            if data_of(x, wait=True) is None:
                observe(x, LOADER)
                data_of(x, wait=True)
        else:
            waiting.extend(_held(x))


def _held(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        yield from x.values()
    elif isinstance(x, (list, tuple)):
        if x and not isinstance(x[0], _PLAIN):
            yield from x[:_MOST]
    elif inspect.isfunction(x):
        for cell in x.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # it has no value yet
                continue
    elif inspect.ismethod(x):
        yield x.__self__
    elif not isinstance(x, type) and not inspect.ismodule(x):
        yield from getattr(x, "__dict__", {}).values()
