"""The trace of a thread: its ops since the last cut."""

from __future__ import annotations

import itertools
from operator import call
from typing import Any
from weakref import ref

from .state import State
from .values import Value

_serial = itertools.count()


def between_traces() -> int:
    """Return a number above the `serial` of all traces so far and below that of later ones."""
    return next(_serial)


class TraceGraph:
    """Notes about the autograd graph of a trace, and its nodes as far as somebody asked."""

    weak: bool = False  # `grad_fns` holds weak references: the trace is done
    hooked: int = 0  # what no remembered backward knows of: hooks, tangents, frames
    detached: frozenset[Value] = frozenset()  # values of tensors that `detach_()` cut off
    noted: dict[State, Any] | None = None  # nodes with notes, see `node_metadata.py`
    frames: Any = None  # checkpointed calls by the states of their nodes
    duals: Any = None  # tangents of the values that ops took, see `dual_levels.py`

    def __init__(self) -> None:
        self.serial = next(_serial)  # traces in the order of their making
        self.grad_fns: Any = {}  # graph nodes that somebody asked for, by state
        # Tensors that retain their gradient: (state, output that made them) -> weak reference.
        self.retains: dict[Any, Any] = {}
        self.freed: set[State] = set()  # that a backward passed without keeping the graph

    def node(self, state: State) -> Any:
        """Return the graph node of a state, if there is one."""
        node = self.grad_fns.get(state)
        return node() if self.weak and node is not None else node

    def hold(self, state: State, node: Any) -> None:
        """Have `node` found from now on; it is kept alive until the trace is done."""
        self.grad_fns[state] = ref(node) if self.weak else node

    def let_go_of_nodes(self) -> None:
        """Hold the graph's nodes only weakly: they live while somebody else holds them."""
        self.frames = None
        if not self.weak:
            self.weak = True
            nodes = self.grad_fns
            self.grad_fns = dict(zip(nodes, map(ref, nodes.values()), strict=True))


class TraceMemory:
    """Notes about the memory that tensors of a trace share, and about writes to it."""

    viewed: bool = False  # tensors share memory, or did
    silent: tuple[Any, ...] = ()  # writes that no version counter saw, see `data_writes.py`
    # Version counters, by storage, of tensors that another thread took out of the trace.
    elsewhere: dict[int, Any] | None = None
    bundles: tuple[Any, ...] = ()  # what stands for hundreds of tensors, see `bundles.py`

    def __init__(self) -> None:
        self.undo: list[Any] = []  # what tensors held before they were written to, see `undo.py`


class TraceOutcome:
    """Results of a trace: of its program, and of what was computed beside it."""

    done: bool = False  # its program ran, or its values were given up
    failure: BaseException | None = None  # why its program failed
    told: bool = False  # the thread knows what the checks of its program found
    peeked: Any = None  # what other threads computed from here, see `recomputation.Peeked`
    glanced: dict[int, Any] | None = None  # arrays of values looked at beside it, by number


class Trace:
    """The ops that one thread recorded since its last cut.

    Attributes:
      state: where in the trie it stands.
      arrays: one array (or number) an `Input` so far, in order.
      nbytes: how much memory it holds on to, roughly.
      refs: weak references to the tensors that are in the trace, in creation order; who is
        alive at the cut is asked of them.
      entered: for each tensor that entered, its value (by id), so that it enters once.
      bulk: leaves of models that calls were given, marked as entered or not.
      sources: tensors by the value they entered as: leaves and externals of the graph.
      inside: the JAX trace that it belongs to, see `jax_transforms.py`; None outside of all.
      versions: version counters of storages when they entered.
      graph, memory, outcome: notes that few ops make or read, by topic.
    """

    __slots__ = (
        "state", "arrays", "nbytes", "refs", "entered", "bulk", "sources", "versions", "inside",
        "graph", "memory", "outcome", "__weakref__",
    )  # fmt: skip

    def __init__(self, root: State) -> None:
        self.state = root
        self.arrays: list[Any] = []
        self.nbytes = 0
        self.refs: list[ref[Any]] = []
        self.entered: dict[int, Any] = {}
        self.bulk: tuple[Any, ...] = ()
        self.sources: dict[Value, Any] = {}
        self.versions: dict[int, int] = {}
        self.inside: Any = None
        self.graph = TraceGraph()
        self.memory = TraceMemory()
        self.outcome = TraceOutcome()

    def living(self) -> list[Any]:
        """List the tensors in the trace that are held; one that entered twice comes twice."""
        return [t for t in map(call, self.refs) if t is not None and t._trace is self]
