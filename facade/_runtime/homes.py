"""Inputs that outputs of a program replace: on several devices they lie where those lay."""

from __future__ import annotations

from collections.abc import Mapping

from .._core.trie import Trace
from .._tracing.inputs import list_inputs
from .._tracing.undo import Draw


def homes(trace: Trace, over: Mapping[int, int]) -> dict[int, int]:
    """Map numbers of values to the places of the inputs that they replace.

    What a tensor was overwritten with replaces what it held, and a gradient, which is new in each
    step, stands beside its parameter. The state of a generator is everybody's, and stays free.

    Args:
      over: what writes over which input, as `written_over` tells.
    """
    places = {value.index: k for k, value in enumerate(list_inputs(trace))}
    drawn = {places.get(n.value.index) for n in trace.memory.undo if type(n) is Draw}
    found = {n: place for n, place in over.items() if place not in drawn}
    for t in trace.living():
        grad = t._grad
        if grad is None or grad._trace is not trace or t._trace is not trace:
            continue
        n, own = grad._v.index, t._v.index
        place = found.get(own, places.get(own))
        if place is not None and n >= 0 and n not in places and grad._v.shape == t._v.shape:
            found.setdefault(n, place)
    return found
