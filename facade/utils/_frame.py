"""One checkpointed call: what its graph nodes need is recorded again when backward comes.

The function is recorded as usual, so its graph is PyTorch's. Its `Frame` takes the place of what
the nodes saved: when the engine reaches one of them, the function is called again, what it
records is compared with the first time, and its steps are recorded once more on inputs behind an
`optimization_barrier` (with the gradient that has arrived), so that XLA computes them then and
not before. What was computed in between is freed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .._autograd.graph.edges import edge_from
from .._autograd.graph.history import set_history
from .._autograd.graph.saved_origin import origin_of_tensor
from .._autograd.graph.version_checks import modified
from .._autograd.saved_hooks.context_saved import snapshot
from .._autograd.saved_hooks.saved_tensors_hooks import Packed, pack_argument, saving, unhooked
from .._core.grad_modes import within
from .._core.handle import Handle
from .._core.trie import NOWHERE, Mode, State, Value, local, resting
from .._dispatch.record import record_new
from .._dispatch.subgraph import Region
from .._ops.autocast.snapshot import Autocast
from .._ops.creation.generator import all_go_back, all_places
from .._storage.autograd_roles import alias
from .._storage.enter import enter
from .._tracing.inputs import make
from .._tracing.loop_cuts import uncut
from ._frame_steps import bearing_steps, metadata_of, op_steps, with_first_edge
from ._group import owner
from ._mismatch import CheckpointError, compare, report
from ._recomputed import Again, InThread, Latest, Recomputed
from ._replay import replay
from ._selective import Cached


class StopRecomputation(Exception):
    """All that the gradients read was computed again: the rest of the function is not called."""


class _Counting(threading.local):
    """Hold what is counted in this thread while a call is recorded again."""

    counter: Callable[[State, bool], None] | None = None


counting = _Counting()


def _count(op: Any, args: Any, kwargs: Any, key: Any, may_stop: bool) -> Any:
    """Record one op and count it; the key of its step is one that is never looked up before."""
    trace = local.trace
    key = ("counted", *key)
    state = trace.state.next.get(key)
    if state is None:
        state = record_new(trace, key, op, args, kwargs)
    trace.state = state
    assert counting.counter is not None
    counting.counter(state, may_stop)
    return state, trace


Mode.intercept("counted", _count)


class Frame:
    """One call of a checkpointed function.

    Attributes:
      steps: the ops that forward recorded, in order.
      metadata: of what PyTorch would have saved of them.
      here: what this thread computed again.
    """

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, *, preserve: bool,
        context: AbstractContextManager[Any], metadata_fn: Any, early_stop: bool, debug: bool,
    ) -> None:  # fmt: skip
        self.fn, self.kwargs = fn, kwargs
        self.args = [pack_argument(a) for a in args]
        self.preserve, self.context = preserve, context
        self.metadata_fn, self.early_stop, self.debug = metadata_fn, early_stop, debug
        self.versions = [
            t._version if isinstance(t, Handle) and not t._v.inference else None for t in self.args
        ]
        self.rng = all_places()
        now = local.mode
        self.mode = Mode.of(now.enabled, now.inference, now.autocast, False, counted=False)
        self.autocast = Autocast()
        self.region = Region()
        self.steps: list[State] = []
        self.metadata: list[Any] = []
        self.here = InThread()
        self.kept: list[Recomputed] = []  # what Functions saved

    def took_duals(self) -> bool:
        """Tell whether an op of the forward pass had a tangent: those are not computed again."""
        duals = local.trace.graph.duals or {}
        return any(v in duals for s in op_steps(self.region) for v in s.operands)

    def close(self) -> None:
        """The forward pass is over: its nodes belong to this frame from now on."""
        trace = local.trace
        self.steps = op_steps(self.region)
        self.metadata = metadata_of(self.steps, self.metadata_fn)
        for kept in self.kept:
            self.metadata.append(self.metadata_fn(kept.tensor._v))
            kept.tensor = None
        self.kept = []
        del self.region
        if trace.graph.frames is None:
            trace.graph.frames = {}
        trace.graph.frames.update(dict.fromkeys(bearing_steps(self.steps), self))
        trace.graph.hooked += 1  # no remembered backward calls the function again

    # ------------------------------------------------------------ in backward

    def again(self, node: Any, grads: list[Any], create_graph: bool) -> Again:
        """Return a node of this call, from what is computed again in the running trace."""
        state: State = node.state
        recorded = self._again(state, grads, spend=True)
        operands = list(recorded.operands)
        if create_graph:
            for i, v in enumerate(state.operands):
                if v.requires_grad:
                    operands[i] = with_first_edge(operands[i], v, node, i)
        return Again(node, recorded, operands)

    def unpack(self, node: Any, index: int) -> Any:
        """Return what a node of the call would have saved: `grad_fn._saved_self`."""
        state = node.state
        again = self._again(state, [])
        if index < 0:
            return set_history(make(again.values[-1 - index], local.trace), node, -1 - index)
        value, first = again.operands[index], state.operands[index]
        if first.requires_grad:
            value = with_first_edge(value, first, node, index)
        return make(value, local.trace)

    def _again(
        self, state: State, grads: list[Any], env: dict[int, Value] | None = None, *,
        spend: bool = False,
    ) -> State:  # fmt: skip
        latest = self._recomputed(grads, env)
        if spend:
            latest.spend(state)
        second = latest.made[state]
        nested = latest.inner.get(second)
        if nested is not None:  # a checkpoint in the checkpoint
            return nested._again(second, grads, latest.env)  # type: ignore[no-any-return]
        return latest.states[second]

    def saved_by_function(self, number: int, grads: list[Any]) -> Any:
        """Return the tensor that a Function saved as the frame's `number`-th, computed again."""
        latest = self._recomputed(grads)
        latest.spend(number)
        t = latest.found[number]
        if t._v.index not in latest.numbers:  # from outside of the function
            return t
        value = latest.env[t._v.index]
        return make(alias(local.trace, value, resting(value.aval, False, NOWHERE)), local.trace)

    def _recomputed(self, grads: list[Any], env: dict[int, Value] | None = None) -> Latest:
        """Return what the second call recorded, one for each backward pass (or group of them)."""
        before, now = self.here.latest, owner(local.autograd.tasks)
        mine = before is not None and now is not None and before.owner() is now
        if before is not None and mine and before.is_here():
            return before
        self.here.latest = latest = self._recompute(grads, env or {})
        if before is not None and mine:  # a program ran in between
            latest.spent = before.spent
        return latest

    def _recompute(self, grads: list[Any], env: dict[int, Value]) -> Latest:
        for t, version in zip(self.args, self.versions, strict=True):
            if version is not None and t._version != version:
                raise modified(t._v, version, t._version, origin_of_tensor(t))
        here = self.here
        here.found = []
        unpacked = [a.unpack(None) if isinstance(a, Packed) else a for a in self.args]
        try:
            with uncut():
                region = Region()
                self._call(unpacked)
            found = here.found
        finally:
            here.found = None
        if not region.intact():
            raise RuntimeError(
                "checkpoint: the function looked at values when it was called again in backward, "
                "and had not done so before"
            )
        steps = op_steps(region)
        kept = self.context.kept(steps) if isinstance(self.context, Cached) else {}
        self._compare(steps, found)
        args = {enter(a, local.trace).index for a in unpacked if isinstance(a, Handle)}
        made = dict(zip(bearing_steps(self.steps), bearing_steps(steps), strict=False))
        frames = local.trace.graph.frames or {}  # of this call too, which must not hold itself
        inner = {s: frames[s] for s in made.values() if s in frames}
        env, states = replay(steps, kept, grads, env, args)
        return Latest(made, inner, env, states, found)

    def _call(self, args: Sequence[Any]) -> None:
        before = all_places()
        mode, counter = local.mode, counting.counter
        now = self.mode
        again = Mode.of(now.enabled, now.inference, now.autocast, counted=self.early_stop)
        counting.counter = self._counter()
        try:
            if self.preserve:
                all_go_back(self.rng)
            with self.autocast, within(again), unhooked(), self.context, saving(self):
                self.fn(*args, **self.kwargs)
        except StopRecomputation:
            pass
        finally:
            local.set_mode(mode)
            counting.counter = counter
            if self.preserve:
                all_go_back(before)

    def _counter(self) -> Callable[[State, bool], None]:
        """Raises once as much was recorded as the gradients read."""
        here = self.here
        here.left = len(bearing_steps(self.steps)), len(self.metadata)

        def count(state: State, may_stop: bool) -> None:
            steps, saved = here.left
            saved -= len(metadata_of([state], self.metadata_fn))
            here.left = steps - len(bearing_steps([state])), saved
            if may_stop:
                self._stop()

        return count

    def _stop(self) -> None:
        if all(n <= 0 for n in self.here.left):
            raise StopRecomputation

    def _compare(self, steps: list[State], found: list[Any]) -> None:
        now = metadata_of(steps, self.metadata_fn) + [self.metadata_fn(t._v) for t in found]
        fewer = len(bearing_steps(steps)) < len(bearing_steps(self.steps))
        try:
            compare(self.metadata, now, early_stop=self.early_stop, fewer=fewer)
        except CheckpointError as e:
            if self.debug:
                report(self.steps, steps, e)
            raise

    # ------------------------------------------------------------ what Functions save

    def keep(self, t: Any, own: int | None) -> Any:
        """Return what stands for a tensor that a Function saves: `t` itself until the call ends."""
        here = self.here
        if here.found is not None:
            own = own if t.requires_grad else None
            t = t if own is None else snapshot(t)  # its history would lead here
            here.found.append(t)
            here.left = here.left[0], here.left[1] - 1
            if self.early_stop:
                self._stop()
            return Recomputed(None, 0, t, own)
        edge = edge_from(t) if own is None else (own if t.requires_grad else None)
        kept = Recomputed(self, len(self.kept), t, edge)
        self.kept.append(kept)
        return kept
