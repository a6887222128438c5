"""Functions that packages above the graph and its engine add to them, each when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Extensions:
    """One field a function, with the module that sets it.

    Attributes:
      attributes: by how their names begin, what gives a node's other attributes: `saved`,
        `saved_hooks`.
      run_node: runs one node outside of a pass: `engine.current_task`.
      by_formula: a node's gradients by PyTorch's formula: `formulas.by_formula`.
      from_stand_ins: a node's gradients from what stands for the tensors that it saved:
        `formulas.from_stand_ins`.
      rewritten: what stands for saved tensors that `.data` changed: `data_writes`.
      kept_result: what stands for a result that a gradient is taken from: `data_writes`.
      map_rows: maps a function over the rows of tensors: `func._vmap`.
      zeros_like: the factory of that name: `_ops.creation.factories`.
      positions: where masks among indices are True: `_ops.indexing.masks`.
    """

    attributes: dict[str, Callable[[Any, str], Any]]
    run_node: Callable[[Any, tuple[Any, ...]], Any]
    by_formula: Callable[[Any, list[Any], set[Any], bool], list[Any] | None]
    from_stand_ins: Callable[[Any, dict[int, Any], list[Any], set[Any]], list[Any]]
    rewritten: Callable[[Any], dict[int, Any]]
    kept_result: Callable[[Any], dict[int, Any]]
    map_rows: Callable[[Callable[..., list[Any]], list[Any]], list[Any]]
    zeros_like: Callable[..., Any]
    positions: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]

    def __init__(self) -> None:
        self.attributes = {}


extensions = Extensions()
