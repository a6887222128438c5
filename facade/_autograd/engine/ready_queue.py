"""Nodes that wait for nothing any more, and room for passes that nest."""

from __future__ import annotations

import heapq
import itertools
import sys
from typing import Any


def make_room(depth: int) -> int:
    """Raise Python's limit so that backward passes nest deeper; returns what to set it to after.

    PyTorch gives deep ones to other threads. A level takes ten Python frames of ours and 0.9 kB
    of C stack, of which threads have 8 MB.
    """
    if not depth or depth % 8 or depth > 4000:
        return 0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1000)
    return limit


class ReadyQueue:
    """Nodes that wait for nothing any more: those recorded later come first, each only once."""

    def __init__(self) -> None:
        self._heap: list[Any] = []
        self._count = itertools.count()
        self._queued: set[Any] = set()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, node: Any) -> None:
        if node not in self._queued:
            self._queued.add(node)
            key = -node.graph_order[0], -node.graph_order[1]
            heapq.heappush(self._heap, (key, next(self._count), node))

    def pop(self) -> Any:
        return heapq.heappop(self._heap)[-1]
