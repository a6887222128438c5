"""Data at rest on the host: a slice, a number or a batch of them is NumPy's, not a program's.

`stack([data[i : i + 8] for i in ix])` is in very many scripts. Recorded, each slice is two entries
of the training step's program, and each number that Python asks for a cut. PyTorch computes all of
it at once, and where the data lie in the host's memory at rest that is the quickest here as well:
a view notes what it views and enters a program only if one uses it, integers are added up, and
what is gathered from such views comes to the step as one input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import jax
import numpy as np

from leafax.functional import TABLE, Aval, Op, on_host

from ._enter import from_array
from ._handle import Handle
from ._host import room
from ._host import wait as wait_for
from ._threads import sharing
from ._trace import local, resting

_SELECT = TABLE["select"]
_tensor_class: Any = Handle

# How the data are read that a view op sees: functions of the array and the op's arguments.
_READERS: dict[Op, Callable[..., Any]] = {}
_INTS = {int, type(None)}


def _at(x: Any, dim: int, key: Any) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (key, ...)]


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    start += x.shape[dim] if start < 0 else 0
    return _at(x, dim, slice(start, start + length))


def _slice(
    x: Any, dim: int = 0, start: int | None = None, stop: int | None = None, step: int = 1
) -> Any:
    return _at(x, dim, slice(start, stop, step))


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if x.flags.c_contiguous else None  # else it is copied each time


def register(cls: type, slices: Op) -> None:
    """Tell which class tensors are, and which op an index with a colon is."""
    global _tensor_class
    _tensor_class = cls
    _READERS.update({
        _SELECT: _at, slices: _narrow, TABLE["narrow"]: _narrow, TABLE["slice"]: _slice,
        TABLE["view"]: _reshape, TABLE["reshape"]: _reshape, TABLE["unsqueeze"]: np.expand_dims,
        TABLE["transpose"]: np.swapaxes, TABLE["t"]: np.transpose,
    })  # fmt: skip


def is_free() -> bool:
    """Whether ops may be computed at once, for nothing has to know of them."""
    mode = local.mode
    if not mode.plain or mode.inference or mode.anomaly or local.look is not None:
        return False
    if local.uncut or local.aside or local.opaque or local.view_replay:
        return False
    return on_host()


def data_of(t: Any, wait: bool = False) -> np.ndarray | None:
    """The data of a tensor at rest, on the memory where they are; None if they are not known.

    Args:
      wait: for what a program computes still; else that is left to programs that follow.
    """
    with sharing:
        array, lens = t._array, None
        if array is None and t._shares:
            if t._viewed is not None:
                source, lens = t._viewed
            elif t._store is not None:
                source, lens = t._store.cell, t._lens
            else:
                return None
            if lens is None or type(source) is ref:
                return None
            array = source._array
    if array is None or array.dtype.kind not in "biufc" or not on_host():
        return None
    if not isinstance(array, np.ndarray):
        if isinstance(array, jax.core.Tracer) or not (wait or array.is_ready()):
            return None
        wait_for(array)
        # No array of JAX's that keeps one of NumPy's: it could be written over no more.
        array = np.asarray(memoryview(array))
    for op, args, kwargs in lens or ():
        reader = _READERS.get(op)
        if reader is None or kwargs or not all(map(_is_static, args)):
            return None
        array = reader(array, *args)
        if array is None:
            return None
    return array


def _is_static(x: Any) -> bool:
    return type(x) in _INTS or type(x) is tuple and _INTS.issuperset(map(type, x))


def view_at_rest(op: Op, source: Any, args: tuple[Any, ...], length: int | None) -> Any:
    """A view of a tensor at rest, which enters a program where one uses it; None for others.

    Args:
      length: of the first dim in the view; None if it has that dim no more.
    """
    value = source._v
    if source._array is None and not source._shares or value.requires_grad or value.inference:
        return None
    if value.strides is not None or source._stale is not None or type(source) is not _tensor_class:
        return None
    if source._duals is not None or value.dtype.kind not in "biufc" or not is_free():
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
    """The elements of a vector of integers at rest, as views that know their numbers.

    Args:
      wait: for what a program computes still.
    """
    value = t._v
    if type(t) is not _tensor_class or value.inference or value.strides is not None:
        return None
    if t._duals is not None or t._stale is not None or not is_free():
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
    from ._storage import share

    share(source, out, lens, view=True)


def _view(root: Any, out: Any, lens: Any) -> None:
    """Let `out` be a view of a tensor at rest that has no storage yet."""
    viewers = root._viewers
    if viewers is None:
        viewers = root._viewers = []
        root._shares = True
        if root._trace is not None:
            root._trace.viewed = True
    out._base_ = root
    out._viewed = root, lens
    out._shares = True
    viewers.append(ref(out))
    n = len(viewers)
    if n >= 64 and not n & (n - 1):  # of slices few live long
        viewers[:] = [viewer for viewer in viewers if viewer() is not None]


def _of_storage(source: Any, lens: Any, length: int | None) -> Any:
    """A view of a tensor that shares its storage already."""
    if source._store.cell._array is None or source._v.index >= 0:
        return None
    out = _made(source._v, length)
    _share(source, out, lens)
    if source._creation or not local.mode.grad:
        out._creation = source._creation or "no_grad"
    return out


def _made(value: Any, length: int | None) -> Any:
    out: Any = object.__new__(_tensor_class)
    shape = tuple(value.shape)[1:]
    out._v = resting(Aval(shape if length is None else (length, *shape), value.dtype))
    out._trace = None
    return out


_JOINED: dict[str, Any] = {"stack": np.stack, "cat": np.concatenate}


def joined(name: str, tensors: Sequence[Any], dim: int) -> Any:
    """Tensors at rest stacked or joined, as a tensor at rest; None where that is for a program."""
    join = _JOINED.get(name)
    if join is None or not tensors or type(dim) is not int or not is_free():
        return None
    kind = None
    arrays = []
    for t in tensors:
        if type(t) is not _tensor_class or t._stale is not None or t._duals is not None:
            return None
        value = t._v.resting
        if value is not kind:
            if kind is not None and (name == "stack" or value.dtype != kind.dtype):
                return None
            kind = value
            if value.requires_grad or value.inference or value.strides is not None:
                return None
        array = data_of(t)
        if array is None:
            return None
        arrays.append(array)
    return _joined(name, join, arrays, dim)


def _joined(name: str, join: Callable[..., Any], arrays: list[Any], dim: int) -> Any:
    ndim = arrays[0].ndim + (name == "stack")
    if not -ndim <= dim < ndim or ndim == 0:
        return None
    shape = list(arrays[0].shape)
    dim %= ndim
    if name == "stack":
        shape.insert(dim, len(arrays))
    else:
        rest = shape[:dim] + shape[dim + 1 :]
        if any([*a.shape[:dim], *a.shape[dim + 1 :]] != rest for a in arrays):
            return None
        shape[dim] = sum(a.shape[dim] for a in arrays)
    out = room(tuple(shape), arrays[0].dtype)
    join(arrays, dim, out=out)
    return from_array(out)
