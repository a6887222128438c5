"""The recorder of each thread, and the modes that it records in."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from leafax.functional.program.numerics import Numerics, numerics

from ..runner import Runner
from ..vmap_protocol import VmapStack
from .state import State
from .thread_state import Autograd, Cuts, Settings, Trie
from .trace import Trace

# Takes an op, its arguments, by position and name, the key of its step, and whether the program may
# be cut before it.
Interceptor = Callable[[Any, Any, Any, Any, bool], "tuple[Any, Trace] | None"]


class Mode:
    """All that a thread's surroundings add to the meaning of an op; one object a combination.

    Attributes:
      enabled: what `is_grad_enabled()` says.
      grad: whether ops are recorded for autograd; in inference mode they never are.
      interceptors: are asked in turn to record an op that is not known at its place; the first
        that does returns the state after it and the trace, the others None.
      observers: are told of each state that is made.
    """

    __slots__ = (
        "enabled", "grad", "inference", "autocast", "hooks", "dual", "anomaly", "counted",
        "numerics", "plain", "interceptors", "observers",
    )  # fmt: skip
    _made: dict[Any, Mode] = {}
    # By the field that turns them on; in the order in which they are asked.
    _interceptors: dict[str, Interceptor | None] = dict.fromkeys(
        ("autocast", "dual", "hooks", "counted")
    )
    _observers: dict[str, Callable[[State], None]] = {}

    def __init__(
        self, grad: bool, inference: bool, autocast: Any, hooks: bool, dual: tuple[int, ...],
        anomaly: bool, counted: bool, now: Numerics,
    ) -> None:  # fmt: skip
        self.enabled, self.grad = grad, grad and not inference
        self.inference, self.autocast = inference, autocast
        self.hooks = hooks  # saved-tensor hooks are in force
        self.dual = dual  # levels of forward mode that ops carry tangents of, see `dual_levels.py`
        self.anomaly = anomaly  # anomaly detection is on
        self.counted = counted  # a checkpointed call counts what is recorded
        self.numerics = now  # the default dtype, and how exact products are
        self.interceptors = _turned_on(self, self._interceptors)
        self.observers = _turned_on(self, self._observers)
        # Nothing else takes part in an op: no cast, hook, tangent or count.
        self.plain = autocast is None and not (hooks or dual or counted)

    @classmethod
    def intercept(cls, field: str, interceptor: Interceptor) -> None:
        """Install a recorder of ops for modes with `field` on, before there are such modes."""
        assert field in cls._interceptors
        cls._interceptors[field] = interceptor

    @classmethod
    def observe(cls, field: str, observer: Callable[[State], None]) -> None:
        """Install an observer of new states for modes with `field` on."""
        cls._observers[field] = observer

    @classmethod
    def of(
        cls, grad: bool = True, inference: bool = False, autocast: Any = None,
        hooks: bool | None = None, dual: tuple[int, ...] | None = None,
        anomaly: bool | None = None, counted: bool | None = None,
    ) -> Mode:  # fmt: skip
        """Return the mode with these fields; None beyond `autocast` keeps the thread's setting."""
        hooks = local.mode.hooks if hooks is None else hooks
        dual = local.mode.dual if dual is None else dual
        anomaly = local.mode.anomaly if anomaly is None else anomaly
        counted = local.mode.counted if counted is None else counted
        key = (grad, inference, autocast, hooks, dual, anomaly, counted, numerics())
        mode = cls._made.get(key)
        if mode is None:
            mode = cls._made[key] = cls(*key)
        return mode


def _turned_on(mode: Mode, features: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([f for field, f in features.items() if f is not None and getattr(mode, field)])


class _Anomaly:
    """The mode that `detect_anomaly` set last, for threads that start from now on."""

    watch: Any = None
    tell: Any = None


anomaly = _Anomaly()


class Local(threading.local):
    """The thread's recorder; `runner` is the same in all threads.

    Attributes:
      mode, trace: what its ops mean now, and those recorded since the last cut.
      budget: nodes at which a loop that never observes is cut, 0 if in none.
      turned: a tensor got another shape behind autograd's back, once.
      vmap: the running `vmap`s, while there is one.
      opaque: the JAX function that is being traced as an op.
      faults: flags of runs that nobody has looked at.
      trie, settings, autograd, cuts: facts that few ops ask for, by topic.
    """

    runner: Runner

    def __init__(self) -> None:
        told = anomaly.tell is not None
        self.trie = Trie()
        self.settings = Settings(anomaly.watch, anomaly.tell)
        self.autograd = Autograd()
        self.cuts = Cuts()
        self.mode = Mode.of(hooks=False, dual=(), anomaly=told, counted=False)
        self.trace = Trace(self.root(self.mode))
        self.budget = 0
        self.turned = False
        self.vmap: VmapStack | None = None
        self.opaque: str | None = None
        self.faults: deque[Any] = deque()

    def root(self, mode: Mode) -> State:
        state = self.trie.roots.get(mode)
        if state is None or mode.anomaly:  # under which each step has a stack of its own
            state = self.trie.roots[mode] = State(None, None, mode)
        return state

    def set_mode(self, mode: Mode) -> None:
        """Go on recording under `mode`: a step, since it changes what the next ops mean."""
        if mode.numerics is not numerics():  # it was left before these were others
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
