"""Checks of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.typename import typename
from .node import Node

if TYPE_CHECKING:
    from .graph import Graph


def check(graph: Graph) -> None:
    """Raise RuntimeError unless nodes take earlier ones, names differ and targets are there."""
    names: set[str] = set()
    seen: set[Node] = set()
    for node in graph.nodes:
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        for arg in node._input_nodes:
            if arg.graph is not graph:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was "
                    "used as an argument! If you are copying nodes from another graph, make "
                    f"sure to use ``arg_transform`` on node_copy() to remap values\n{graph}"
                )
            if arg not in seen:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' was used before it has been defined! "
                    f"Please check that Nodes in the graph are topologically ordered\n{graph}"
                )
        seen.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
        if graph.owning_module is not None:
            _check_target(graph.owning_module, node)


def _check_target(owner: Any, node: Node) -> None:
    if node.op == "call_function" and not callable(node.target):
        raise ValueError(
            f"Node {node} target {node.target} has type {typename(node.target)} but a Callable "
            "is expected"
        )
    if node.op not in ("get_attr", "call_module"):
        return
    at, atoms = owner, node.target.split(".")
    for i, atom in enumerate(atoms):
        at = getattr(at, atom, None)
        if at is None:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {atom} of "
                f"{'.'.join(atoms[:i])}"
            )
