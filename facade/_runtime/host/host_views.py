"""Views of data at rest on the host, which enter a program only where one uses them.

`stack([data[i : i + 8] for i in ix])` is in very many scripts. Recorded, each slice is two entries
of the training step's program, and each number that Python asks for a cut. PyTorch computes all of
it at once, and where the data lie in the host's memory that is the quickest here as well: a view
notes what it views (see also `host_arrays.py`, `host_integers.py`, `host_gather.py`).
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.execution.single_ops import on_host
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Aval

from ..._core.locks import sharing
from ..._core.trie import local, resting
from ..._storage.host_arrays import data_of
from ..._storage.shared_storage import share
from ..._tracing import inputs

_SELECT = TABLE["select"]


def is_free() -> bool:
    """Return whether ops may be computed at once, because no mode has to know of them."""
    mode = local.mode
    if not mode.plain or mode.inference or mode.anomaly or local.vmap is not None:
        return False
    if local.cuts.uncut or local.cuts.aside or local.opaque or local.settings.view_replay:
        return False
    return on_host()


def is_plain(t: Any) -> bool:
    """Return whether `t` has no user's class, no tangents, and no write that it has not seen."""
    return type(t) is inputs._tensor_class and t._stale is None and t._duals is None


def view_at_rest(op: Op, source: Any, args: tuple[Any, ...], length: int | None) -> Any:
    """Make a view of a tensor at rest, which enters a program where used; None for others.

    Args:
      length: of the first dim in the view; None if it has that dim no more.
    """
    value = source._v
    if source._array is None and not source._shares or value.requires_grad or value.inference:
        return None
    if value.strides is not None or value.dtype.kind not in "biufc":
        return None
    if not is_plain(source) or not is_free():
        return None
    with sharing:
        root = source
        lens: Any = ((op, args, {}),)
        if source._viewed is not None:
            root, above = source._viewed
            if above is None or type(root) is ref or root._array is None:
                return None
            if value.index >= 0:  # a program made it, which knows how
                return None
            lens = above + lens
        elif source._viewers is None and source._store is not None:
            return _of_storage(source, lens, length)
        elif source._base_ is not None or source._array is None:
            return None
        out = _made(value, length)
        _view(root, out, lens)
        if source._creation or not local.mode.grad:
            out._creation = source._creation or "no_grad"
        return out


def items(t: Any, wait: bool = False) -> list[Any] | None:
    """Return the elements of an integer vector at rest as views that know their numbers.

    Args:
      wait: for what a program computes still.
    """
    value = t._v
    if value.inference or value.strides is not None or not is_plain(t) or not is_free():
        return None
    with sharing:
        data = data_of(t, wait)
        if data is None:
            return None
        data = np.array(data)  # which nobody writes to
        data.flags.writeable = False
        of_store = t._viewed is None and t._viewers is None and t._store is not None
        root, above = t._viewed or (t, ())
        creation = t._creation or ("multi" if local.mode.grad else "no_grad")
        found = []
        for k in range(data.shape[0]):
            out = _made(value, None)
            lens: Any = ((_SELECT, (0, k), {}),)
            out._array = data[k, ...]
            if of_store:
                _share(t, out, lens)
            else:
                _view(root, out, above + lens)
            out._creation = creation
            found.append(out)
        return found


def _share(source: Any, out: Any, lens: Any) -> None:
    share(source, out, lens, view=True)


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


def _of_storage(source: Any, lens: Any, length: int | None) -> Any:
    """Make a view of a tensor that shares its storage already."""
    if source._store.cell._array is None or source._v.index >= 0:
        return None
    out = _made(source._v, length)
    _share(source, out, lens)
    if source._creation or not local.mode.grad:
        out._creation = source._creation or "no_grad"
    return out


def _made(value: Any, length: int | None) -> Any:
    out: Any = object.__new__(inputs._tensor_class)
    key = value.resting, length
    kind = _kinds.get(key)
    if kind is None:
        shape = tuple(value.shape)[1:]
        kind = resting(Aval(shape if length is None else (length, *shape), value.dtype))
        _kinds[key] = kind
    out._v = kind
    out._trace = None
    return out


_kinds: dict[Any, Any] = {}  # what is viewed, and the length of the view -> what the view is
