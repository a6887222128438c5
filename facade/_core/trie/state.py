"""A place in the trie: it stands for all that was recorded up to there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .values import Value

if TYPE_CHECKING:
    from .recorder import Mode


class State:
    """A place in the trie.

    Attributes:
      next: key of a step -> the state after it.
      parent: the state before.
      entry: the program's `Input` or `Node` that this step adds, or None (a change of mode).
      values: the values that the entry adds, or that this step makes of older ones.
      value: the first of them.
      count: values in the program up to here.
      nodes: computing entries up to here; the budget counts them.
      depth: steps from the root; orders the backward pass as PyTorch's sequence numbers do.
      mode: grad mode and kin from here on.
      where: the user's file and line that recorded it.
      plans: how to run the program that ends here, by what is alive.
      walks: how the tensors leave that are alive here, see `remembered_exits.py`.
      operands: the values that the entry's call takes; with their edges they are the graph.
      saves: what PyTorch would save of the op, see `_rules/saved_columns.py`.
      lens: how the view that this step makes reads its source, see `pending_views.py`.
      used: when a program that ends here ran last, by the thread's count of cuts.
      numbers: places of Python numbers: the key that was baked in there first, and known calls
        that take this step, each with the place where it begins.
      node_class: the class of its graph nodes, once one was asked for.
      again: whether a walk through what was freed reads anything, see `residual_plan.py`.
      pulls: how NumPy computes its gradient at once, see `pass_at_once.py`.
    """

    __slots__ = (
        "__weakref__", "next", "parent", "entry", "values", "value", "count", "nodes", "depth",
        "mode", "where", "plans", "walks", "numbers", "operands", "used", "call", "saves", "lens",
        "node_class", "again", "pulls",
    )  # fmt: skip

    def __init__(self, parent: State | None, entry: Any, mode: Mode) -> None:
        self.next: dict[Any, Any] = {}
        self.parent = parent
        self.entry = entry
        self.values: tuple[Value, ...] = ()
        self.value: Any = None
        self.count: int = parent.count if parent else 0
        self.nodes: int = parent.nodes if parent else 0
        self.depth: int = parent.depth + 1 if parent else 0
        self.mode = mode
        self.where: tuple[str, int] | None = None
        self.plans: dict[Any, Any] | None = None
        self.walks: dict[Any, Any] | None = None
        self.numbers: Any = None
        self.operands: tuple[Value, ...] = ()
        self.used = 0
        self.saves: Any = None
        self.lens: Any = None
        self.node_class: Any = None
        self.again: bool | None = None
        self.pulls: dict[Any, Any] | None = None
        self.call: Any = getattr(entry, "call", None)

    def path(self) -> list[State]:
        """Return the states from the root to here."""
        return self.since()

    def since(self, *starts: State) -> list[State]:
        """List the states after the nearest of `starts`, in order; all if none leads to here."""
        states: list[State] = []
        state: State | None = self
        while state is not None and state not in starts:
            states.append(state)
            state = state.parent
        states.reverse()
        return states
