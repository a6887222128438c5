"""The trace of a thread: its ops since the last cut."""

from __future__ import annotations

import itertools
from typing import Any
from weakref import ref

from .state import State
from .values import Value

_serial = itertools.count()


def between_traces() -> int:
    """Return a number above the `serial` of all traces so far and below that of later ones."""
    return next(_serial)


class Trace:
    """The ops that one thread recorded since its last cut.

    Attributes:
      state: where in the trie it stands.
      arrays: one array (or number) an `Input` so far, in order.
      refs: weak references to the tensors that are in the trace, in creation order; who is
        alive at the cut is asked of them.
      entered: for each tensor that entered, its value (by id), so that it enters once.
      sources: tensors by the value they entered as: leaves and externals of the graph.
      grad_fns: graph nodes that somebody asked for, by state; references to them once it is
        done.
      retains: tensors that retain their gradient, by the state and output that made them.
      freed: states that a backward passed without keeping the graph.
      silent: writes that version counters did not see, see `data_writes.py`.
      bulk: leaves of models that calls were given, marked as entered or not.
      detached: values of tensors that `detach_()` cut off.
      elsewhere: version counters, by storage, of tensors that another thread took out of it.
      peeked: what other threads computed from here, see `side_programs.Peeked`.
      viewed: tensors in it share memory, or did.
      undo: what tensors held before they were written to, see `undo.py`.
      failure: why its program failed; None if it did not.
      inside: the JAX trace that it belongs to, see `jax_transforms.py`; None outside of all.
      told: the thread knows what the checks of its program found.
      glanced: arrays of values that were looked at beside the program, by number.
      serial: traces in the order of their making.
    """

    __slots__ = (
        "state", "arrays", "refs", "entered", "sources", "grad_fns", "retains", "freed", "serial",
        "duals", "frames", "done", "versions", "nbytes", "hooked", "weak",
        "silent", "detached", "noted", "bulk", "elsewhere", "peeked", "glanced",
        "viewed", "undo", "failure", "told", "inside", "__weakref__",
    )  # fmt: skip

    def __init__(self, root: State) -> None:
        self.state = root
        self.arrays: list[Any] = []
        self.refs: list[ref[Any]] = []
        self.entered: dict[int, Any] = {}
        self.sources: dict[Value, Any] = {}
        self.grad_fns: Any = {}
        self.retains: dict[Any, Any] = {}  # (state, output) -> weak reference
        self.freed: set[State] = set()
        self.serial = next(_serial)
        self.done = False
        self.noted: dict[State, Any] | None = None  # nodes with notes, see `node_metadata.py`
        self.frames: Any = None  # checkpointed calls by the states of their nodes
        self.duals: Any = None  # tangents of the values that ops took, see `dual_levels.py`
        self.versions: dict[int, int] = {}
        self.nbytes = 0
        self.hooked = 0
        self.silent: tuple[Any, ...] = ()
        self.bulk: tuple[Any, ...] = ()
        self.elsewhere: dict[int, Any] | None = None
        self.detached: frozenset[Value] = frozenset()
        self.peeked: Any = None
        self.glanced: dict[int, Any] | None = None
        self.weak = False
        self.viewed = False
        self.undo: list[Any] = []
        self.failure: BaseException | None = None
        self.told = False
        self.inside: Any = None

    def node(self, state: State) -> Any:
        """Return the graph node of a state, if there is one."""
        node = self.grad_fns.get(state)
        return node() if self.weak and node is not None else node

    def hold(self, state: State, node: Any) -> None:
        """Have `node` found from now on; it is kept alive until the trace is done."""
        self.grad_fns[state] = ref(node) if self.weak else node

    def let_go_of_nodes(self) -> None:
        """Hold the graph's nodes only weakly: they live while somebody else holds them."""
        if not self.weak:
            self.weak = True
            self.grad_fns = {s: ref(n) for s, n in self.grad_fns.items()}
