"""PyTorch's `torch.fx.subgraph_rewriter`: parts of graphs replaced by others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from .node import Node, map_arg

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """Where a pattern was found: its last node in the graph, and the graph's node of each."""

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:  # fmt: skip
    """Replace each part of a graph that does what a pattern does, and return where they were.

    Args:
      gm: whose graph is changed.
      pattern: a function or a graph of the calls to look for; its parameters stand for any value.
      replacement: a function or a graph of the same parameters.

    >>> import leafax as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1))
    >>> _ = torch.fx.replace_pattern(traced, lambda a: torch.relu(a), lambda a: torch.sigmoid(a))
    >>> traced(torch.tensor([-1.0]))
    tensor([0.5000])
    """
    wanted, put = _graph_of(pattern), _graph_of(replacement)
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in reversed(gm.graph.nodes):
        found = _match(wanted, node)
        if found is None:
            continue
        inner = {found[n] for n in wanted.nodes if n.op not in ("placeholder", "output")}
        if not inner & taken and _stands_alone(inner, node):
            taken |= inner
            matches.append(Match(node, found))
    matches.reverse()
    renamed: dict[Node, Any] = {}
    for match in matches:
        _replace(gm, wanted, put, match, renamed)
    gm.recompile()
    if isinstance(replacement, Module):
        for node in gm.graph.nodes:
            named = node.op in ("call_module", "get_attr")
            if named and not _has_attr(gm, node.target) and _has_attr(replacement, node.target):
                value = copy.deepcopy(_get_attr(replacement, node.target))
                _assign_attr(value, gm, node.target)
    gm.graph.lint()
    return matches


def _graph_of(fn: Any) -> Graph:
    if isinstance(fn, GraphModule):
        return fn.graph
    return fn if isinstance(fn, Graph) else symbolic_trace(fn).graph


def _match(pattern: Graph, end: Node) -> dict[Node, Node] | None:
    """Return the graph's node for each of a pattern whose last one is `end`; None if it differs."""
    last = pattern.output_node().args[0]
    found: dict[Node, Any] = {}
    if not isinstance(last, Node) or last.op == "placeholder":
        return None
    return found if _same(last, end, found) else None


def _same(wanted: Any, there: Any, found: dict[Node, Any]) -> bool:
    if not isinstance(wanted, Node):
        if isinstance(wanted, (list, tuple)) and isinstance(there, (list, tuple)):
            pairs = zip(wanted, there, strict=False)
            return len(wanted) == len(there) and all(_same(a, b, found) for a, b in pairs)
        if isinstance(wanted, dict) and isinstance(there, dict):
            return wanted.keys() == there.keys() and all(
                _same(x, there[k], found) for k, x in wanted.items()
            )
        return type(wanted) is type(there) and wanted == there
    if wanted in found:
        return found[wanted] is there
    if wanted.op == "placeholder":
        found[wanted] = there
        return True
    if not isinstance(there, Node) or (wanted.op, wanted.target) != (there.op, there.target):
        return False
    found[wanted] = there
    return _same(wanted.args, there.args, found) and _same(wanted.kwargs, there.kwargs, found)


def _stands_alone(inner: set[Node], end: Node) -> bool:
    return all(user in inner for node in inner if node is not end for user in node.users)


def _replace(
    gm: GraphModule, pattern: Graph, put: Graph, match: Match, renamed: dict[Node, Any]
) -> None:
    copies: dict[Node, Any] = {}
    inputs = [n for n in put.nodes if n.op == "placeholder"]
    places = [n for n in pattern.nodes if n.op == "placeholder"]
    for mine, theirs in zip(inputs, places, strict=True):
        value = match.nodes_map[theirs]
        copies[mine] = renamed.get(value, value)
    users = match.anchor.users
    first = next((n for n in gm.graph.nodes if n in users), match.anchor)
    with gm.graph.inserting_before(first):
        for node in put.nodes:
            if node.op not in ("placeholder", "output"):
                copies[node] = gm.graph.node_copy(node, lambda n: copies[n])
    made = map_arg(put.output_node().args[0], lambda n: copies[n])
    match.anchor.replace_all_uses_with(made)
    renamed[match.anchor] = made
    for node in reversed(list(pattern.nodes)):
        if node.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[node])
