"""`for i in ix`: the numbers that a loop goes through, which it will ask for one by one."""

from __future__ import annotations

from typing import Any

from ..._core.run_log import LOOP
from ..._core.trie import NOWHERE, local
from ..._host.looks import MOST, keep_on_host
from ..._host.rule import is_free, memory_of
from ..._host.views import items
from ..._tracing.preparations import has_graph
from ..cut import cut
from ..side_programs import settle_early


def items_of(t: Any) -> list[Any] | None:
    """Return what a loop over a tensor goes through, on the host; None where it is recorded.

    That is so for a tensor that is there, and for a vector of integers, which are looked at.
    """
    value = t._v
    if value.numel > MOST:
        return None
    if value.index < 0 and memory_of(t) is not None:
        return items(t)
    if value.dtype.kind not in "iu" or len(value.shape) != 1 or not is_free():
        return None
    if _is_pending(t):
        if not has_graph(local.trace.state):
            cut(LOOP, (t,))
        elif not settle_early(t, LOOP):
            return None
    elif value.index >= 0:
        return items(t)
    keep_on_host(t)
    return items(t, wait=True)


def _is_pending(t: Any) -> bool:
    value = t._v
    return t._trace is local.trace and value.index >= 0 and value.role == NOWHERE
