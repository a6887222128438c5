"""One checkpointed call: what its graph nodes need is recorded again when backward comes.

The function is recorded as usual, so its graph is PyTorch's. Its `Frame` takes the place of what
the nodes saved: when the engine reaches one of them, the function is called again, what it
records is compared with the first time, and its steps are recorded once more on inputs behind an
`optimization_barrier` (with the gradient that has arrived), so that XLA computes them then and
not before. What was computed in between is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import ref

from leafax.functional import Input
from leafax.functional import Node as Entry

from .. import _random
from .._budget import uncut
from .._dtype import of
from .._enter import alias, enter, keep_edge, make
from .._handle import Handle
from .._keep import needed
from .._record import record
from .._region import Region
from .._saved import modified, saved_places
from .._step import step
from .._trace import Mode, State, Value, local, resting
from ._barrier import BARRIER
from ._selective import Cached

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint‑debug mode globally.
"""


class CheckpointError(RuntimeError):
    """The function did not do in backward what it did in forward."""


class StopRecomputation(Exception):
    """All that the gradients read was computed again: the rest of the function is not called."""


class Frame:
    """One call of a checkpointed function.

    Attributes:
      steps: the ops that forward recorded, in order.
      metadata: of what PyTorch would have saved of them.
    """

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, *, preserve: bool,
        context: AbstractContextManager[Any], metadata_fn: Any, early_stop: bool, debug: bool,
    ) -> None:  # fmt: skip
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.preserve, self.context = preserve, context
        self.metadata_fn, self.early_stop, self.debug = metadata_fn, early_stop, debug
        self.versions = [
            t._version if isinstance(t, Handle) and not t._v.inference else None for t in args
        ]
        generator = _random.default_generator
        self.rng = generator._state, generator._seed
        now = local.mode
        self.mode = Mode.of(now.grad, now.inference, now.autocast, counted=False)
        self.region = Region()
        self.steps: list[State] = []
        self.metadata: list[Any] = []
        self.latest: Any = None

    def close(self) -> None:
        """The forward pass is over: its nodes belong to this frame from now on."""
        trace = local.trace
        self.steps = _ops(self.region)
        self.metadata = _metadata(self.steps, self.metadata_fn)
        del self.region
        if trace.frames is None:
            trace.frames = {}
        trace.frames.update(dict.fromkeys(_bearing(self.steps), self))
        trace.hooked += 1  # no remembered backward calls the function again

    # ------------------------------------------------------------ in backward

    def operands(self, state: State, node: Any, grads: list[Any], create_graph: bool) -> Any:
        """The state that computes a node's op again, and its operands in the running trace."""
        again = self._again(state, grads)
        trace = local.trace
        operands = list(again.operands)
        if create_graph:
            for i, v in enumerate(state.operands):
                if v.requires_grad:
                    operands[i] = _with_edge(operands[i], v, node, i)
        assert local.trace is trace
        return again, operands

    def _again(self, state: State, grads: list[Any], env: dict[int, Value] | None = None) -> State:
        task = local.tasks[-1] if local.tasks else None
        known = self.latest
        if known is None or known[0]() is not task or known[1]() is not local.trace:
            steps, inner, replayed = self._recompute(grads, env or {})
            made = dict(zip(_bearing(self.steps), _bearing(steps), strict=False))
            self.latest = (
                ref(task) if task is not None else lambda: None, ref(local.trace), made, inner,
                replayed,
            )  # fmt: skip
        _, _, made, inner, (env, states) = self.latest
        second = made[state]
        nested = inner.get(second)
        if nested is not None:  # a checkpoint in the checkpoint
            return nested._again(second, grads, env)  # type: ignore[no-any-return]
        return states[second]  # type: ignore[no-any-return]

    def _recompute(self, grads: list[Any], env: dict[int, Value]) -> Any:
        from ..autograd._context import origin

        for t, version in zip(self.args, self.versions, strict=True):
            if version is not None and t._version != version:
                raise modified(t._v, version, t._version, origin(t))
        with uncut():
            region = Region()
            self._call()
        if not region.intact():
            raise RuntimeError(
                "checkpoint: the function looked at values when it was called again in backward, "
                "and had not done so before"
            )
        steps = _ops(region)
        inner = dict(local.trace.frames or {})
        kept = self.context.kept(steps) if isinstance(self.context, Cached) else {}
        self._compare(steps)
        args = {enter(a, local.trace).index for a in self.args if isinstance(a, Handle)}
        return steps, inner, _replay(steps, kept, grads, env, args)

    def _call(self) -> None:
        generator = _random.default_generator
        before = generator._state, generator._seed
        mode, recorded = local.mode, local.recorded
        now = self.mode
        local.set_mode(Mode.of(now.grad, now.inference, now.autocast, counted=self.early_stop))
        local.recorded = self._counter()
        try:
            if self.preserve:
                generator._state, generator._seed = self.rng
            with self.context:
                self.fn(*self.args, **self.kwargs)
        except StopRecomputation:
            pass
        finally:
            local.set_mode(mode)
            local.recorded = recorded
            if self.preserve:
                generator._state, generator._seed = before

    def _counter(self) -> Callable[[State, bool], None]:
        """Raises once as much was recorded as the gradients read."""
        steps, saved = len(_bearing(self.steps)), len(self.metadata)

        def recorded(state: State, may_stop: bool) -> None:
            nonlocal steps, saved
            steps -= len(_bearing([state]))
            saved -= len(_metadata([state], self.metadata_fn))
            if may_stop and steps <= 0 and saved <= 0:
                raise StopRecomputation

        return recorded

    def _compare(self, steps: list[State]) -> None:
        found = _metadata(steps, self.metadata_fn)
        first = self.metadata
        error = None
        if len(found) > len(first) and not self.early_stop:
            error = (
                "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                f"during the original forward pass.\n{TIP}"
            )
        elif len(found) < len(first) or len(_bearing(steps)) < len(_bearing(self.steps)):
            error = (
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(first)}\nNumber of tensors saved during recomputation: {len(found)}.\n{TIP}"
            )
        else:
            differ = "".join(
                f"tensor at position {k}:\nsaved metadata: {a}\nrecomputed metadata: {b}\n"
                for k, (a, b) in enumerate(zip(first, found, strict=False))
                if a != b
            )
            if differ:
                error = (
                    "torch.utils.checkpoint: Recomputed values for the following tensors have "
                    f"different metadata than during the forward pass.\n{differ}.\n{TIP}"
                )
        if error is not None:
            if self.debug:
                error += (
                    "\nOperations executed during the original forward:\n\n"
                    + _listing(self.steps)
                    + "\n\nOperations executed during recomputation:\n\n"
                    + _listing(steps)
                )
            raise CheckpointError(error)


def _ops(region: Region) -> list[State]:
    return [s for s in region.steps() if isinstance(s.entry, Entry)]


def _tracked(steps: list[State]) -> list[State]:
    """The steps that are nodes of the graph."""
    return [s for s in steps if any(v.requires_grad for v in s.values)]


def _bearing(steps: list[State]) -> list[State]:
    """Those whose gradient reads anything."""
    return [s for s in _tracked(steps) if any(not v.weak for v in _reads(s))]


def _reads(s: State) -> list[Value]:
    places = [*[i for _, i in saved_places(s)], *needed(s)]
    return [s.operands[i] if i >= 0 else s.values[-1 - i] for i in places]


def _metadata(steps: list[State], fn: Any) -> list[Any]:
    found = []
    for s in _tracked(steps):
        for _, index in saved_places(s):
            v = s.operands[index] if index >= 0 else s.values[-1 - index]
            if not v.weak:
                found.append(fn(v))
    return found


def _listing(steps: list[State]) -> str:
    return "\n".join(
        f"{s.call!r}" + (f"   {s.where[0]}:{s.where[1]}" if s.where else "") for s in steps
    )


def default_metadata(v: Value) -> dict[str, Any]:
    """What the determinism check compares of a saved tensor."""
    from .._dtype import device

    return {"shape": v.shape, "dtype": of(v.dtype), "device": device("cpu")}


# ---------------------------------------------------------------- recording the steps again


def _replay(
    steps: list[State],
    kept: dict[State, list[Any]],
    grads: list[Any],
    env: dict[int, Value],
    args: set[int],
) -> tuple[dict[int, Value], dict[State, State]]:
    """Record steps once more behind a barrier.

    Args:
      kept: tensors that stand for the results of some of them.
      grads: what has arrived: nothing is computed before it has.
      env: values that stand for others, by number.
      args: numbers of the function's arguments. Other inputs of the program, parameters above
        all, are not put behind the barrier, which may copy.

    Returns:
      What stands for each value, and the new state of each step.
    """
    trace = local.trace
    made = {v.index for s in steps for v in s.values}
    free = {
        v.index: v for s in steps for v in s.operands
        if v.index not in made and not v.weak and (v.index in args or not _at_rest(v))
    }  # fmt: skip
    behind = [env.get(i, v) for i, v in free.items()]
    arrived = [enter(g, trace) for g in grads if g is not None]
    env = dict(env)
    if behind:
        state, _ = record(BARRIER, (*behind, *arrived), {"n": len(behind)}, budget=False)
        env.update(zip(free, state.values, strict=False))
    states: dict[State, State] = {}
    for s in steps:
        values = [env.get(v.index, v) for v in s.operands]
        key = ("again", s.call, *values)
        after = trace.state.next.get(key)
        if after is None:
            after = step(trace, key, s.call, values, differentiable=False)
        trace.state = states[s] = after
        results: Sequence[Value] = after.values
        if s in kept:
            results = [enter(t, trace) for t in kept[s]]
        env.update(zip([v.index for v in s.values], results, strict=True))
    return env, states


def _at_rest(v: Value) -> bool:
    return isinstance(v.state.entry, Input)


def _with_edge(value: Value, first: Value, node: Any, i: int) -> Value:
    """A recomputed operand with the way that gradients took from the first one."""
    trace = local.trace
    if node.trace is trace:
        return keep_edge(trace, value, first)
    edge = node.edges()[i]
    if edge is None:
        return value
    from ..autograd._node import external

    if edge[0].accumulates:
        leaf = edge[0].variable
        made = alias(trace, value, resting(value.aval, True, first.role))
        trace.sources[made] = leaf
        return made
    return external(value, edge[0], edge[1])


def saved(node: Any, index: int) -> Any:
    """What a node of an earlier program would have saved: `grad_fn._saved_self`."""
    from ..autograd._node import set_history

    state = node.state
    again = node.frame._again(state, [])
    if index < 0:
        return set_history(make(again.values[-1 - index], local.trace), node, -1 - index)
    value, first = again.operands[index], state.operands[index]
    if first.requires_grad:
        value = _with_edge(value, first, node, index)
    return make(value, local.trace)
