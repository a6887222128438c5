"""Calls of public functions that are one step once they were made: the hit path of all of them.

What a function records follows from the place in the trie, the values of the tensors that it is
given and its other arguments. So the first call at a place walks through parser, checks, composed
ops and views; what it came to is kept with the place, and the same call there goes to the state
after it and makes the results, whatever the function is made of: `linear` with its four ops, a
view of a view, a cast that autocast adds. What a call did is worked out in `call_effects.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

from leafax.functional.program.op import Op

from .._core.cast_tensors import casts
from .._core.dtypes import dtype as dtype_class
from .._core.handle import Handle
from .._core.trie import LEAF, Mode, Trace, local
from .._host.compute import computed
from .._tracing.loop_cuts import BUDGET
from .._tracing.miss import number_part
from .._tracing.novelty import Doers, unrepeated
from .call_effects import NUMBERS, Before, is_plain
from .kept_calls import MISSED

F = TypeVar("F", bound=Callable[..., Any])

_tensor_class: Any = Handle  # of results
_plain: set[type] = set()  # classes of tensors and modules' parameters
is_plain_class: Callable[[type], bool] = _plain.__contains__

_INTS = frozenset({int})
_BOUNDS = frozenset({int, type(None)})
# Arguments of these types stand in a key as they are; others after their type, or not at all.
_BARE = frozenset({int, type(None), dtype_class})


def register(tensor: type | None = None, parameter: type | None = None) -> None:
    """Tell which class results are, and which class modules' parameters."""
    global _tensor_class
    _tensor_class = tensor or _tensor_class
    _plain.update(cls for cls in (tensor, parameter) if cls is not None)


def in_one_step(fn: F, op: Op | None = None) -> F:
    """Return, as a decorator, a function whose calls are one step each where they are known.

    Args:
      fn: what it records follows from its arguments and the modes of recording. It asks nothing
        else, and warns of nothing.
      op: that it records, if it is one op alone.
    """
    new = object.__new__

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = local.trace
        state = trace.state
        key: Any
        if (  # views by sizes or dims
            not kwargs and args and type(args[-1]) in _BARE and type(args[0]) is _tensor_class
            and _BARE.issuperset(map(type, args[1:]))
        ):  # fmt: skip
            tensors = [args[0]]
            key = (fn, args[0]._v, *args[1:])
        else:
            key, tensors, given = [fn], [], args
            add = key.append
            if kwargs:
                add(tuple(kwargs))  # a tuple of strings, as which no argument stands in a key
                given = (*args, *kwargs.values())
            for a in given:
                kind = type(a)
                if kind in _plain:
                    add(a._v)
                    tensors.append(a)
                elif kind in _BARE:
                    add(a)
                elif not _spell(a, kind, key, tensors):
                    return fn(*args, **kwargs)
            key = tuple(key)
        if state.mode.autocast is not None:
            key = _with_casts(state.mode, key, tensors)
        kept = state.next.get(key)
        if kept is not None:
            if kept.nodes > (local.budget or BUDGET) or local.vmap is not None:
                return fn(*args, **kwargs)  # which cuts, or records an example
            if kept.value is not None:
                trace.state = kept.state
                out = new(_tensor_class)
                out._v = kept.value
                out._trace = trace
                trace.refs.append(ref(out))
                return out
            out = kept.take(trace, tensors)
            if out is not MISSED:
                return out
        if unrepeated and tensors:
            out = Doers.call(fn, key, tensors, args, kwargs)
            if out is None and kept is not None:
                out = kept.take(trace, tensors, True)
            if out is not None and out is not MISSED:
                return out
        if op is not None and tensors and tensors[0]._v.index < 0:
            out = computed(op, args, kwargs, known=True)
            if out is not None:
                return out
        if (fn, NUMBERS) in state.next or not (_may_keep(trace) and is_plain(trace, tensors)):
            return fn(*args, **kwargs)
        before = Before(trace, tensors)
        out = fn(*args, **kwargs)
        if local.trace is trace:
            before.keep(key, out)
        return out

    return call  # type: ignore[return-value]


def _spell(a: Any, kind: type, key: list[Any], tensors: list[Any]) -> bool:
    """Add an argument to a key, and the tensors in it to `tensors`; False if no key tells it."""
    if kind is str or kind is bool:
        key += kind, a
    elif kind is float:
        key += float, a if a and a == a else number_part(a)
    elif isinstance(a, tuple) and _INTS.issuperset(map(type, a)):
        key.append(tuple(a))
    elif kind is slice:
        bounds = a.start, a.stop, a.step
        key += (slice, *bounds)
        return _BOUNDS.issuperset(map(type, bounds))
    elif kind is list or kind is tuple:
        key += (kind, len(a))
        for x in a:
            kind = type(x)
            if kind in _plain:
                key.append(x._v)
                tensors.append(x)
            elif kind in _BARE:
                key.append(x)
            elif not _spell(x, kind, key, tensors):
                return False
    elif a is Ellipsis:
        key.append(a)
    else:
        return False
    return True


def _with_casts(mode: Mode, key: Any, tensors: list[Any]) -> Any:
    """Return a key with what autocast has cast before of leaves: a call may take it instead."""
    kept, more = casts.kept, []
    for t in tensors[:]:
        if t._v.role == LEAF:
            known = kept.get((id(t), mode.autocast, mode.grad)) if kept else None
            if known is None or known[0]() is not t:
                more.append(casts.enabled)
            else:
                more.append(known[1]._v)
                tensors.append(known[1])
    return (*key, *more)


def _may_keep(trace: Trace) -> bool:
    """Tell whether nothing but the trie and the arguments takes part in what is recorded now."""
    mode = trace.state.mode
    if mode.hooks or mode.dual or mode.counted or mode.anomaly or mode.inference:
        return False
    if local.vmap is not None or local.settings.view_replay or trace.inside is not None:
        return False
    return local.autograd.guard is None
