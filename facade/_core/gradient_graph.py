"""The gradient graph as the layers below it see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .trie import Trace, Value


class Graph:
    """Functions that `_autograd.graph.edges` sets when it is imported.

    Attributes:
      edge_of: tells where the gradient of a trace's value goes.
      retain, retain_at: let a tensor hold the gradient that reaches a value, or a node's output.
      unretain: takes a tensor off the node where it retained its gradient.
    """

    edge_of: Callable[[Trace, Value], Any]
    retain: Callable[[Any, Value, Trace], None]
    retain_at: Callable[[Any, Any, int], None]
    unretain: Callable[[Any], None]


graph = Graph()
