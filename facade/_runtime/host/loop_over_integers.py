"""`for i in ix`: the numbers that a loop goes through, which it will ask for one by one."""

from __future__ import annotations

from typing import Any

from ..._core.run_log import LOOP
from ..._core.trie import NOWHERE, local
from ..._tracing.preparations import has_graph
from ..cut import cut
from ..side_programs import settle_early
from .host_views import is_free, items

MOST = 4096  # elements that one looks at so: each takes as long as a short program


def items_of(t: Any) -> list[Any] | None:
    """Return the elements of a vector of integers; None where they are to be recorded."""
    value = t._v
    if value.dtype.kind not in "iu" or len(value.shape) != 1 or value.numel > MOST:
        return None
    found = items(t)
    if found is not None or not _is_pending(t) or not is_free():
        return found
    if not has_graph(local.trace.state):
        cut(LOOP, (t,))
    elif not settle_early(t, LOOP):
        return None
    return items(t, wait=True)


def _is_pending(t: Any) -> bool:
    value = t._v
    return t._trace is local.trace and value.index >= 0 and value.role == NOWHERE
