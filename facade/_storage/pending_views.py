"""Views of tensors that nobody has written to: what they share is worked out when it is asked for.

Most views are read once and dropped, so the fast path notes two things only: the view knows what
it is a view of and how (`_viewed`; where how is None, it is detached), and that tensor knows who
views it (`_viewers`). Whatever asks for shared storage (a write, `_version`, a cut that the view
outlives) finds `Shared` fields there, which `settle.py` fills first: from then on there is a
`Storage`, as if it had been made at once.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from leafax.functional.program.op import Op

from .._core.locks import sharing
from .._core.pieces import Pieces
from .._core.trie import State, Trace, Value, local, resting
from .._core.view_ops import PICKED
from .._tracing import inputs

# Whether these can view a view (or must copy, or raise) depends on its strides.
_BY_STRIDES = frozenset({"as_strided", "flatten", "ravel", "reshape", "unflatten", "view"})


def view(op: Op, args: Any, kwargs: Any, state: State, trace: Trace) -> Any:
    """Make the result of a view op whose step is known to lead to `state`.

    None where more has to be worked out than what most views need.
    """
    lens = state.lens
    if lens is None:
        lens = _lens(op, args, kwargs, state)
        if len(state.operands) == 1:  # else a number among the arguments is an input
            state.lens = lens
    if not lens or local.settings.view_replay or local.vmap is not None:
        return None
    root = source = args[0]
    with sharing:
        if source._v is not state.operands[0]:  # another thread has it, or wrote to it just now
            return None
        viewers = source._viewers
        if viewers is None:
            if source._viewed is not None:
                root, above = source._viewed
                if op.name in _BY_STRIDES or above is None or type(above) is Pieces:
                    return None
                lens = above + lens
                viewers = root._viewers
            elif source._base_ is not None or source._store is not None:
                return None
            else:
                viewers = source._viewers = []
                source._shares = True
        out: Any = object.__new__(inputs._tensor_class)
        out._v = state.value
        out._trace = trace
        out._base_ = root
        out._viewed = root, lens
        out._shares = trace.memory.viewed = True
        if source._creation or not state.mode.grad:
            kept = state.mode.grad or source._creation == "inference"
            out._creation = source._creation if kept else "no_grad"
        me = ref(out)
        trace.refs.append(me)
        viewers.append(me)
    return out


def view_of(source: Any, lens: Any, state: State, trace: Trace) -> Any:
    """Make the view of a tensor that shares nothing yet, by a lens that ends in `state`."""
    return view_again(source, lens, state.value, None if state.mode.grad else "no_grad", trace)


def view_again(source: Any, lens: Any, value: Value, creation: Any, trace: Trace) -> Any:
    """Make a view with this value of a tensor that shares nothing yet."""
    out: Any = object.__new__(inputs._tensor_class)
    out._v = value
    out._trace = trace
    out._base_ = source
    out._viewed = source, lens
    out._shares = source._shares = trace.memory.viewed = True
    if creation:
        out._creation = creation
    me = ref(out)
    trace.refs.append(me)
    source._viewers = [me]
    return out


def _lens(op: Op, args: Any, kwargs: Any, state: State) -> Any:
    """Return the lens by which the results of this step read their base; () if not made here."""
    of = args[0]._v
    plain = not (state.mode.inference or of.inference or state.call.many or op in PICKED)
    if of.strides is not None and op.name in _BY_STRIDES:
        return ()
    if not plain or state.value.requires_grad is not of.requires_grad:
        return ()
    return ((op, args[1:], kwargs or {}),)


_PLAIN: dict[Value, Value] = {}  # what is at rest -> the same, detached


def detached(t: Any) -> Any:
    """Detach a tensor at rest that shares nothing yet, without keeping it alive."""
    v = t._v
    plain = _PLAIN.get(v)
    if plain is None:
        plain = resting(v.aval, inference=v.inference, strides=v.strides)
        _PLAIN[v] = plain
    out: Any = object.__new__(inputs._tensor_class)
    out._array = t._array
    out._v = plain
    out._trace = None
    out._viewed = ref(t), None
    out._shares = t._shares = True
    if t._trace is not None:
        t._trace.memory.viewed = True
    if t._vc is not None:
        out._vc = t._vc
    t._viewers = [ref(out)]
    return out


def is_unsettled(t: Any) -> bool:
    """Return whether a cut must first work out the sharing of `t`.

    That is so for a view, and for a tensor that is yet to be computed and has views.
    """
    return t._viewed is not None or (t._viewers is not None and t._array is None)
