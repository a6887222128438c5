"""Views of data at rest, which enter a program only where one uses them.

`stack([data[i : i + 8] for i in ix])` is in very many scripts. Recorded, each slice is two entries
of the training step's program, and each number that Python asks for a cut. A view at rest notes
what it views and how; where the data lie in the host's memory, NumPy reads it there.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Aval

from .._core.locks import sharing
from .._core.trie import local, resting
from .._rules.strides.layouts import followed, laid
from .._rules.strides.of_results import strides_unless_rows
from .._storage.host_arrays import data_of, is_read, is_static, read_through
from .._storage.shared_storage import share
from .._tracing import inputs
from .._tracing.inputs import add_input
from .._tracing.take import take
from .rule import is_free, is_plain, memory_of, scratch_trace

_SELECT = TABLE["select"]
_INTS = {int}
_MOST = 1 << 14  # kinds that are remembered
_PARTS = frozenset({"select", "narrow", "slice"})  # ops whose arguments were checked
_PLACES = {"select": 2, "narrow": 3}  # ops that say where, and their arguments
_BY_STRIDES = frozenset({"view", "reshape"})  # copies, or raises, where the base is no such view


def element_at_rest(source: Any, index: tuple[int, ...]) -> Any:
    """Make `source[index]` of a tensor at rest as `view_at_rest` does; None for others."""
    shape, n = source._v.shape, len(index)
    if n > len(shape):
        return None
    for k, m in zip(index, shape, strict=False):
        if not -m <= k < m:
            return None
    if n == 1:
        return view_at_rest(source, ((_SELECT, (0, index[0]), {}),), 1)
    return view_at_rest(source, tuple([(_SELECT, (0, k), {}) for k in index]), n)


def view_at_rest(source: Any, lens: Any, kind: Any) -> Any:
    """Make a view of a tensor at rest, which enters a program where used; None for others.

    Args:
      lens: the view ops that lead to it.
      kind: a key for what the view is, for these ops and what its source is; their arguments if
        that follows from all of them, else nothing that arguments of theirs could equal.
    """
    value = source._v
    if source._array is None and not source._shares or value.requires_grad or value.inference:
        return None
    key = lens[0][0], value.resting, kind
    made = _kinds.get(key)
    if made is None:
        if len(_kinds) > _MOST:
            _kinds.clear()
        made = _kinds[key] = _kind_of(lens, value)
    if made is False or not is_plain(source) or not is_free():
        return None
    with sharing:
        if source._viewed is not None:
            root, above = source._viewed
            if above is None or type(root) is ref or root._array is None:
                return None
            if value.index >= 0:  # a program made it, which knows how
                return None
            out = _of_kind(made)
            _view(root, out, above + lens)
        elif source._viewers is None and source._store is not None:
            if source._store.cell._array is None or value.index >= 0:
                return None
            out = _of_kind(made)
            share(source, out, lens, view=True)
        elif source._base_ is not None or source._array is None:
            return None
        else:
            out = _of_kind(made)
            _view(source, out, lens)
        if type(source._array) is np.ndarray:
            out._array = read_through(source._array, lens)
        if source._creation or not local.mode.grad:
            out._creation = source._creation or "no_grad"
        return out


def view_of_call(op: Op, source: Any, args: tuple[Any, ...]) -> Any:
    """Make the view at rest that a call of a view op stands for; None where it is recorded."""
    args = tuple([tuple(a) if type(a) is list else a for a in args])  # a size, say
    kind: Any = args
    if not all(map(is_static, args)):
        return None
    if op.name in _PLACES and len(args) == _PLACES[op.name] and _INTS.issuperset(map(type, args)):
        dim, first, *length = args
        shape = tuple(source._v.shape)
        if not 0 <= dim < len(shape):
            return None
        if length:  # where it begins does not tell what it is
            inside = first >= 0 <= length[0] <= shape[dim] - first
        else:
            inside = -shape[dim] <= first < shape[dim]
        if not inside:
            return None
        kind = dim, *length
    return view_at_rest(source, ((op, args, {}),), kind)


def _kind_of(lens: Any, value: Any) -> Any:
    """Return the value at rest of a view; False where a program has to make it."""
    if value.dtype.kind not in "biufc":
        return False
    if lens[0][0].name not in _PARTS:
        op, args, _ = lens[0]
        return _recorded(op, args, value)
    found = laid(value)
    for op, args, _ in lens:
        found = followed(op, found, args, {})
        if found is None or isinstance(found, list):
            return False
    strides = strides_unless_rows(found, found.shape)
    return resting(Aval(tuple(found.shape), value.dtype), strides=strides)


def _recorded(op: Op, args: Any, value: Any) -> Any:
    """Return the value at rest of what a view op records, which may refuse its arguments."""
    if not is_read(op) or value.strides is not None and op.name in _BY_STRIDES:
        return False
    running, local.trace = local.trace, scratch_trace()
    try:
        source = add_input(local.trace, value.resting, None)
        return take(local.trace, op, (source, *args)).value.resting
    except Exception:  # the recorder meets it again, and raises it
        return False
    finally:
        local.trace = running


def _of_kind(kind: Any) -> Any:
    out: Any = object.__new__(inputs._tensor_class)
    out._v = kind
    out._trace = None
    return out


def items(t: Any, wait: bool = False) -> list[Any] | None:
    """Return the parts of a tensor at rest along its first dim, as views that know their data.

    Args:
      wait: for what a program computes still.
    """
    value = t._v
    if value.inference or value.strides is not None or not is_plain(t) or not is_free():
        return None
    with sharing:
        data = memory_of(t)
        if data is None:
            data = data_of(t, wait)
            if data is None:
                return None
            data = np.array(data)  # which nobody writes to
            data.flags.writeable = False
        of_store = t._viewed is None and t._viewers is None and t._store is not None
        root, above = t._viewed or (t, ())
        if above is None:
            return None
        creation = t._creation or ("multi" if local.mode.grad else "no_grad")
        kind = resting(Aval(tuple(value.shape)[1:], value.dtype))
        found = []
        for k in range(data.shape[0]):
            out = _of_kind(kind)
            lens: Any = ((_SELECT, (0, k), {}),)
            out._array = data[k, ...]
            if of_store:
                share(t, out, lens, view=True)
            else:
                _view(root, out, above + lens)
            out._creation = creation
            found.append(out)
        return found


def _view(root: Any, out: Any, lens: Any) -> None:
    """Make `out` a view of a tensor at rest that has no storage yet."""
    viewers = root._viewers
    if viewers is None:
        viewers = root._viewers = []
        root._shares = True
        if root._trace is not None:
            root._trace.memory.viewed = True
    out._base_ = root
    out._viewed = root, lens
    out._shares = True
    viewers.append(ref(out))
    n = len(viewers)
    if n >= 64 and not n & (n - 1):  # of slices few live long
        viewers[:] = [viewer for viewer in viewers if viewer() is not None]


_kinds: dict[Any, Any] = {}  # what is viewed and how -> what the view is, False if it is not
