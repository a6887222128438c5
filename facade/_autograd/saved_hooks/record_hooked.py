"""Recording of an op while saved-tensor hooks are in force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..._core.grad_modes import within
from ..._core.handle import Handle
from ..._core.trie import Mode, State, Value, local
from ..._dispatch.record import record
from ..._rules.no_derivative import refuse_arguments, refuse_complex, refuse_integers
from ..._rules.node_edges import asks_nobody
from ..._rules.reads_of_gradients import given_of
from ..._storage.enter import enter
from ..._storage.shared_storage import share
from ..._tracing.inputs import make
from ..graph.history import external
from .hooked_node import hooked_node
from .packing import is_held, operands, overwritten, pack, results


class Recorded(NamedTuple):
    """A recorded op, as much as the recorder needs of a state."""

    call: Any
    values: tuple[Value, ...]
    value: Value | None
    operands: tuple[Value, ...] = ()
    packed: tuple[Any, ...] = ()  # for each result the tensor that hooks saw and hold, or None

    def tie(self, outs: list[Any]) -> None:
        """Make results share memory with what hooks hold of them: writes are seen there."""
        for out, held in zip(outs, self.packed, strict=False):
            if held is not None:
                share(held, out, (), view=False)

    def tie_written(self, t: Any) -> None:
        """Make what hooks hold of the new value of `t` see the writes that follow."""
        for held in self.packed[:1]:
            if held is None or held is t:
                continue
            members = [m() for m in held._store.members] if held._shares else []
            for m in (held, *members):
                if m is not None and m is not t and not m._lens and m._base_ is None:
                    share(t, m, (), view=False)


def record_hooked(op: Any, args: Any, kwargs: Any, key: Any, may_cut: bool) -> Any:
    """Record one op under hooks; return None if nothing is saved."""
    mode = local.mode
    if not mode.grad or not op.saves or op.view or not op.differentiable:
        return None
    try:
        with within(Mode.of(False, mode.inference, mode.autocast, False)):
            state, trace = record(op, args, kwargs, budget=False)
    except Exception:
        with within(Mode.of(True, mode.inference, mode.autocast, False)):
            record(op, args, kwargs, budget=False)  # what autograd says comes first
        raise
    if not any(v.requires_grad for v in state.operands) or asks_nobody(state.call, state.operands):
        return _as_is(state), trace
    refuse_arguments(state.call, state.operands)  # which nobody asked without grad mode
    refuse_complex(op, state.values)
    refuse_integers(op, state.values, state.operands)
    if not given_of(state):
        return _as_is(state), trace
    node = hooked_node(state, trace)
    tracked = set(node.given).difference(op.constant_outputs or ())
    outs = [
        make(external(v, node, k) if k in tracked else v, trace) for k, v in enumerate(state.values)
    ]
    pack(node, operands(node, state, args, kwargs, trace))
    with _counted(op, args, outs):
        pack(node, results(node, outs))
    trace = local.trace  # a hook that observes cuts: the outputs are on arrays then
    values = tuple(enter(t, trace) for t in outs)
    packed = tuple([o if is_held(o) else None for o in outs])
    return Recorded(state.call, values, values[0], state.operands, packed), trace


@contextmanager
def _counted(op: Any, args: Any, outs: list[Any]) -> Iterator[None]:
    """Show hooks the result of a write with the counter of what is written to, as after it."""
    place = overwritten(op)
    target = args[place] if place >= 0 else None
    if not isinstance(target, Handle) or target._v.inference:  # type: ignore[attr-defined]
        yield
        return
    if target._vc is None:  # type: ignore[attr-defined]
        target._vc = [0]  # type: ignore[attr-defined]
    counter = outs[0]._vc = target._vc  # type: ignore[attr-defined]
    counter[0] += 1
    try:
        yield
    finally:
        counter[0] -= 1  # the write itself comes next


def _as_is(state: State) -> Recorded:
    return Recorded(state.call, state.values, state.value, state.operands)


Mode.intercept("hooks", record_hooked)
