"""Templates of calls, made by recording each apart when it is first met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._core.trie import EXTERNAL, State, Trace, local
from ..._host.plans import check, recorded
from ..._tracing import inputs
from ..._tracing.novelty import unaware
from .operands import shared_data_of
from .template import Template, template_of

templates: dict[Any, Template | None] = {}  # by key; None for what is left to programs
_MOST_TEMPLATES = 4096
_MOST_OF_ONE = 256  # of one function or op: numbers among its arguments may be new each time
_counts: dict[Any, int] = {}


def learn(what: Any, key: Any, make: Callable[[], Template | None]) -> Template | None:
    """Make a template, unless there are too many of this function or op."""
    made = _counts.get(what, 0)
    if made >= _MOST_OF_ONE:
        return None
    if len(templates) >= _MOST_TEMPLATES:
        templates.clear()
        _counts.clear()
    _counts[what] = made + 1
    template = templates[key] = make()
    return template


@contextmanager
def _apart() -> Iterator[Trace]:
    """Record in a trie of its own, what is computed at once otherwise too."""
    running, states = local.trace, local.trie.states
    cuts = local.cuts
    before = cuts.at_once, cuts.uncut
    local.trace = Trace(State(None, None, local.mode))
    cuts.at_once, cuts.uncut = False, True
    try:
        with unaware():
            yield local.trace
    finally:
        cuts.at_once, cuts.uncut = before
        local.trace, local.trie.states = running, states


def template_of_op(op: Op, args: Any, kwargs: Any) -> Template | None:
    """Make the template of an op; None where it is to be recorded."""
    with _apart() as trace:
        try:
            state = recorded(op, args, kwargs, lambda value: value)
            check(op, args, kwargs, state.value.dtype)
        except Exception:  # the recorder meets it again, and raises it in PyTorch's words
            return None
        if local.trace is not trace or state.call.many:
            return None
        operands = {v: i for i, v in enumerate(inputs.list_inputs(trace))}
        return template_of(state.path()[1:], operands, state.value)


def template_of_call(
    fn: Callable[..., Any], tensors: Sequence[Any], args: Any, kwargs: Any
) -> Template | None:
    """Make the template of a call of a public function; None where it is to be recorded."""
    stand_ins = [_stand_in(t) for t in tensors]
    left = iter(stand_ins)

    def replaced(a: Any) -> Any:
        if isinstance(a, Handle):
            return next(left)
        return type(a)([replaced(x) for x in a]) if type(a) in (tuple, list) else a

    with _apart() as trace:
        try:
            given = [replaced(a) for a in args]
            named = {name: replaced(a) for name, a in kwargs.items()}
            out = fn(*given, **named)
        except Exception:  # the recorder meets it again
            return None
        if local.trace is not trace or trace.outcome.done or type(out) is not inputs._tensor_class:
            return None
        if out._trace is not trace or out._shares or out._stale is not None or out._lens:
            return None
        if any(t._v.index < 0 and t._trace is trace or t._stale is not None for t in stand_ins):
            return None
        operands = {t._v: i for i, t in enumerate(stand_ins) if t._trace is trace}
        return template_of(trace.state.path()[1:], operands, out._v)


def _stand_in(t: Any) -> Any:
    """Make a tensor that is recorded as `t` is, and leaves no trace of it in `t`."""
    made = object.__new__(inputs._tensor_class)
    made._v, made._array, made._trace = t._v, t._array, None
    if t._shares:
        made._array = shared_data_of(t)
    if t._v.role == EXTERNAL:
        made._node, made._out = t._node, t._out
    return made
