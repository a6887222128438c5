"""Places in graphs: the nodes in order, and where new ones are inserted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .node import Node

if TYPE_CHECKING:
    from .graph import Graph


class InsertPoint:
    """A block in which nodes are inserted at another place."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.orig_insert


class NodeList:
    """The nodes of a graph in order; some may be erased or added while they are walked."""

    def __init__(self, graph: Graph, backward: bool = False) -> None:
        self.graph, self.backward = graph, backward

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        return _nodes_between(self.graph._root, self.graph._root, self.backward)

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self.graph, not self.backward))


def _nodes_between(first: Node, end: Node, backward: bool) -> Iterator[Node]:
    """Yield the nodes after `first` up to `end`, though some may be erased meanwhile."""
    at = first._prev if backward else first._next
    while at is not end:
        if not at._erased:
            yield at
        at = at._prev if backward else at._next
