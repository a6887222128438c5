"""The recorder's memory: a trie of everything that was recorded before.

A thread has one `Trace`: what it recorded since the last cut. A `State` is a place in the trie
and stands for a whole history; recording an op is a step to another state, and an op that was
seen before at this place is found by one dictionary lookup. What the step's result is (shape,
dtype, whether it requires grad, where its gradient goes) is known from then on: the `Value`s of
a state hold it, shared by all traces that pass.

So a key must hold all that changes the meaning of what follows. Operands are keyed by their
`Value` (identity), which tells position, dtype and autograd role; grad mode and autocast are
steps of their own.

A tensor is *pending* while it has no array: its `Value` belongs to the running trace. A tensor
with an array enters the trace when it is first used in it; until then its value is `Resting`,
which no key contains, so that the lookup misses and the slow path lets it enter.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import ref

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.program import Aval

from .dtypes import Size
from .runner import Runner
from .vmap_protocol import VmapStack

# Where gradients that reach a value go.
NOWHERE, LEAF, NODE, EXTERNAL = range(4)


class Value:
    """What is known for good of a value in the trie.

    Attributes:
      index: its number in the program; -1 for `resting` values.
      shape, dtype (NumPy's): its abstract value.
      requires_grad: PyTorch's flag of the tensor that holds it.
      role: `NOWHERE`, or how its gradient continues: into a leaf's `.grad` (LEAF), to the op
        that made it (NODE), to a graph that an earlier trace recorded (EXTERNAL).
      edge: the value at which `role` happened: a detached or overwritten tensor shares a number
        with another and yet has an edge of its own.
      state: the state that made it (the entry that computes it).
      out: which of the state's outputs it is.
      storage: number of the storage it lives in, and `version` of that storage then; both count
        from the trace's beginning.
      strides: how its elements lie in memory; None if row by row, see `_rules/strides`.
      apart: where a tensor was detached that has the number, and no edge either; 0 if none was.
      resting: the same facts for a tensor that has left the trace.
    """

    __slots__ = (
        "index", "shape", "dtype", "requires_grad", "role", "edge", "state", "out", "storage",
        "version", "resting", "inference", "weak", "numel", "nbytes",
        "strides", "apart",
    )  # fmt: skip

    def __init__(
        self,
        index: int,
        aval: Aval,
        *,
        requires_grad: bool = False,
        role: int = NOWHERE,
        state: Any = None,
        out: int = 0,
        storage: int = -1,
        version: int = 0,
        inference: bool = False,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.index = index
        self.shape = Size(aval.shape)
        self.dtype = aval.dtype
        self.weak = aval.weak
        self.numel = aval.size
        self.nbytes = aval.size * aval.dtype.itemsize
        self.requires_grad = requires_grad
        self.role = role
        self.edge: Value | None = self if role else None
        self.state = state
        self.out = out
        self.storage = index if storage == -1 else storage
        self.version = version
        self.inference = inference
        self.strides = strides
        self.apart = 0
        kind = (aval, requires_grad, role, inference, strides)
        self.resting = self if index < 0 else resting(*kind)

    @property
    def aval(self) -> Aval:
        return Aval(tuple(self.shape), self.dtype, self.weak)

    def __repr__(self) -> str:
        return f"<value {self.index} {self.dtype.name}{list(self.shape)} role={self.role}>"


_RESTING: dict[Any, Value] = {}


def resting(
    aval: Aval, requires_grad: bool = False, role: int = NOWHERE, inference: bool = False,
    strides: tuple[int, ...] | None = None,
) -> Value:  # fmt: skip
    """The value of tensors that hold an array and are not in a trace: one object a kind."""
    role = EXTERNAL if role == NODE else role
    key = (aval, requires_grad, role, inference, strides)
    value = _RESTING.get(key)
    if value is None:
        value = Value(
            -1, aval, requires_grad=requires_grad, role=role, inference=inference, strides=strides
        )
        _RESTING[key] = value
    return value


# Takes an op, its arguments, by position and name, the key of its step, and whether the program may
# be cut before it.
Interceptor = Callable[[Any, Any, Any, Any, bool], "tuple[Any, Trace] | None"]


class Mode:
    """What a thread's surroundings add to the meaning of an op; one object a combination.

    Attributes:
      enabled: what `is_grad_enabled()` says.
      grad: whether ops are recorded for autograd; in inference mode they never are.
      interceptors: are asked in turn to record an op that is not known at its place; the first
        that does returns the state after it and the trace, the others None.
      observers: are told of each state that is made.
    """

    __slots__ = (
        "enabled", "grad", "inference", "autocast", "hooks", "dual", "anomaly", "counted", "floats",
        "plain", "interceptors", "observers",
    )  # fmt: skip
    _made: dict[Any, Mode] = {}
    # By the field that turns them on; in the order in which they are asked.
    _interceptors: dict[str, Interceptor | None] = dict.fromkeys(
        ("autocast", "dual", "hooks", "counted")
    )
    _observers: dict[str, Callable[[State], None]] = {}

    def __init__(
        self, grad: bool, inference: bool, autocast: Any, hooks: bool, dual: tuple[int, ...],
        anomaly: bool, counted: bool, floats: Any,
    ) -> None:  # fmt: skip
        self.enabled, self.grad = grad, grad and not inference
        self.inference, self.autocast = inference, autocast
        self.hooks = hooks  # saved-tensor hooks are in force
        self.dual = dual  # levels of forward mode that ops carry tangents of, see `dual_levels.py`
        self.anomaly = anomaly  # anomaly detection is on
        self.counted = counted  # a checkpointed call counts what is recorded
        self.floats = floats  # the default dtype
        self.interceptors = _turned_on(self, self._interceptors)
        self.observers = _turned_on(self, self._observers)
        # Nothing else takes part in an op: no cast, hook, tangent or count.
        self.plain = autocast is None and not (hooks or dual or counted)

    @classmethod
    def intercept(cls, field: str, interceptor: Interceptor) -> None:
        """Install what records ops in modes where `field` is on, before there are such modes."""
        assert field in cls._interceptors
        cls._interceptors[field] = interceptor

    @classmethod
    def observe(cls, field: str, observer: Callable[[State], None]) -> None:
        """Install what is told of new states in modes where `field` is on."""
        cls._observers[field] = observer

    @classmethod
    def of(
        cls, grad: bool = True, inference: bool = False, autocast: Any = None,
        hooks: bool | None = None, dual: tuple[int, ...] | None = None,
        anomaly: bool | None = None, counted: bool | None = None,
    ) -> Mode:  # fmt: skip
        """The mode with these fields; None leaves what is not grad, inference or autocast."""
        hooks = local.mode.hooks if hooks is None else hooks
        dual = local.mode.dual if dual is None else dual
        anomaly = local.mode.anomaly if anomaly is None else anomaly
        counted = local.mode.counted if counted is None else counted
        key = (grad, inference, autocast, hooks, dual, anomaly, counted, default_float())
        mode = cls._made.get(key)
        if mode is None:
            mode = cls._made[key] = cls(*key)
        return mode


def _turned_on(mode: Mode, features: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([f for field, f in features.items() if f is not None and getattr(mode, field)])


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
      walks: how the tensors leave that are alive here, see `_walks.py`.
      operands: the values that the entry's call takes; with their edges they are the graph.
      saves: what PyTorch would save of the op, see `_saved.saved_places`.
      lens: how the view that this step makes reads its source, see `_views.py`.
      used: when a program that ends here ran last, by the thread's count of cuts.
      numbers: places of Python numbers: the key that was baked in there first.
      node_class: the class of its graph nodes, once one was asked for.
      again: whether a walk through what was freed reads anything, see `residual_plan.py`.
    """

    __slots__ = (
        "__weakref__", "next", "parent", "entry", "values", "value", "count", "nodes", "depth",
        "mode", "where", "plans", "walks", "numbers", "operands", "used", "call", "saves", "lens",
        "node_class", "again",
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
        self.call: Any = getattr(entry, "call", None)

    def path(self) -> list[State]:
        """The states from the root to here."""
        states: list[State] = []
        state: State | None = self
        while state is not None:
            states.append(state)
            state = state.parent
        states.reverse()
        return states


_serial = itertools.count()


def between_traces() -> int:
    """A number after the `serial` of all traces so far, and before that of those to come."""
    return next(_serial)


class Trace:
    """What one thread recorded since its last cut.

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
      silent: writes that version counters did not see, see `_silent`.
      bulk: leaves of models that calls were given, marked as entered or not.
      detached: values of tensors that `detach_()` cut off.
      elsewhere: version counters, by storage, of tensors that another thread took out of it.
      peeked: what other threads computed from here, see `_peek.Peeked`.
      viewed: tensors in it share memory, or did.
      undo: what tensors held before they were written to, see `_undo.py`.
      failure: why its program failed; None if it did not.
      inside: the JAX trace that it belongs to, see `_transformed`; None outside of all.
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
        """The graph node of a state, if there is one."""
        node = self.grad_fns.get(state)
        return node() if self.weak and node is not None else node

    def hold(self, state: State, node: Any) -> None:
        """Have `node` found from now on; it is kept alive until the trace is done."""
        self.grad_fns[state] = ref(node) if self.weak else node

    def let_go_of_nodes(self) -> None:
        """Nodes now live as long as somebody else holds them."""
        if not self.weak:
            self.weak = True
            self.grad_fns = {s: ref(n) for s, n in self.grad_fns.items()}


class _Anomaly:
    """What `detect_anomaly` last said, for threads that start from now on."""

    watch: Any = None
    tell: Any = None


anomaly = _Anomaly()


class Local(threading.local):
    """The thread's recorder; `runner` is the same in all threads."""

    runner: Runner

    def __init__(self) -> None:
        self.roots: dict[Mode, State] = {}
        told = anomaly.tell is not None
        self.mode = Mode.of(hooks=False, dual=(), anomaly=told, counted=False)
        self.trace = Trace(self.root(self.mode))
        self.budget = 0  # nodes at which a loop that never observes is cut, 0 if in none
        self.turned = False  # a tensor got another shape behind autograd's back, once
        self.vmap: VmapStack | None = None  # the running `vmap`s, while there is one
        self.uncut = False  # a stretch that must stay in one program is being recorded
        self.aside = False  # what is looked at in that stretch is computed aside, without a cut
        self.turn_end: State | None = None  # where the last turns of that loop ended
        self.clock = 0  # counts cuts
        self.states = 0
        self.latest: Any = (None, {})  # where `_saved.latest_versions` was asked last, and them
        self.faults: deque[Any] = deque()  # flags of runs that nobody has looked at
        self.tasks: list[Any] = []  # backward passes that are walking, outermost first
        self.multithreading = True  # what users were told; nothing here depends on it
        self.grad_layout = True  # a new `.grad` lies in memory as its tensor does
        self.view_replay = False  # views made now are made again by their own ops
        self.guard: Any = None  # called before a tensor is written to
        self.opaque: str | None = None  # the JAX function that is being traced as an op
        self.pack_hooks: tuple[Any, ...] = ()  # saved-tensor hooks in force, innermost last
        self.watch: Any = anomaly.watch  # looks for NaN in what a node passes on
        self.anomaly: Any = anomaly.tell  # tells where a node that failed was recorded

    def root(self, mode: Mode) -> State:
        state = self.roots.get(mode)
        if state is None or mode.anomaly:  # under which each step has a stack of its own
            state = self.roots[mode] = State(None, None, mode)
        return state

    def set_mode(self, mode: Mode) -> None:
        """Go on recording under `mode`: a step, since it changes what the next ops mean."""
        if mode.floats is not default_float():  # it was left before the default was another
            mode = Mode.of(mode.enabled, mode.inference, mode.autocast, mode.hooks, mode.dual,
                           mode.anomaly, mode.counted)  # fmt: skip
        self.mode = mode
        trace = self.trace
        state = trace.state
        if state.mode is mode:
            return
        if state.depth == 0 and not trace.refs:  # nothing recorded: begin at the right root
            trace.state = self.root(mode)
            return
        after = state.next.get(mode)
        if after is None or mode.anomaly:
            after = state.next[mode] = State(state, None, mode)
        trace.state = after


local = Local()
