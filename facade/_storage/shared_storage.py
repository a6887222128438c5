"""Shared storage: views, detached tensors, and what a write through one does to the others.

Values are immutable, so sharing is bookkeeping. A `Storage` has a *cell*, a tensor without
autograd that always holds the whole data, and members that read it through lenses: a member's
lens is the view ops from the cell to it (none for the base and for detached tensors). Writing
through a member writes the cell and makes the others stale; a stale member is read anew when it
is next used, so nothing is paid for views that nobody looks at again. A version counter, shared
by all members, counts the writes.

Autograd follows PyTorch: a write through a view in grad mode gives its base a new history
(`CopySlices`), and all views of that base get theirs from it (`AsStridedBackward0`). Written
behind autograd's back (no_grad, detached), a tensor keeps its edge and only the data changes.
"""

from __future__ import annotations

import itertools
from typing import Any
from weakref import ref

from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import TABLE, Op

from .._core.locks import sharing
from .._core.trie import NOWHERE, local, resting
from .._core.view_ops import PICKED, Lens, Replayed, pick
from .._tracing.inputs import from_array, make, note_entry, renew_entry
from .._tracing.jax_transforms import at_home, is_foreign
from .autograd_roles import alias, apart, keep_edge, tag
from .data_writes import note_flag, note_own_memory
from .enter import enter, plain_kind, without_grad
from .pending_views import detached
from .write import make_stale


class Storage:
    """The cell and the tensors that read it."""

    __slots__ = ("cell", "members", "room", "vc", "silent", "writer", "written")

    def __init__(self, cell: Any, vc: list[int]) -> None:
        self.cell, self.vc = cell, vc
        self.members: list[ref[Any]] = []
        self.room = 16  # members at which those that are gone are left out
        self.silent = False  # written to behind the back of a member's version counter
        self.writer: ref[Any] | None = None  # the view that its base got a history through last
        self.written: dict[int, ref[Any]] = {}  # all such views, by their id

    def writes(self, t: Any) -> None:
        """Remember that a base got a history through the view `t`."""
        key, written = id(t), self.written
        self.writer = written[key] = ref(t, lambda _: written.pop(key, None))

    def let_go(self, t: Any) -> None:
        """Stop `t` from sharing this storage."""
        with sharing:
            self.members[:] = [m for m in self.members if m() is not t]
            del t._store
            t._shares, t._lens = False, ()


def storage_of(t: Any) -> Storage:
    """Return the tensor's shared storage, which is made when the first sharer appears."""
    if t._store is None:
        with sharing:
            if t._store is None:  # no other thread has made it
                _make_storage(t)
    return t._store  # type: ignore[no-any-return]


def _make_storage(t: Any) -> None:
    if is_foreign(t, local.trace):
        with at_home(t):
            return _make_storage(t)
    if t._vc is None:
        t._vc = [0]
    trace = local.trace
    if t._array is not None:
        cell = from_array(t._array, inference=t._v.inference)
        if t._v.strides is not None:
            cell._v = resting(cell._v.aval, inference=t._v.inference, strides=t._v.strides)
        cell._vc = t._vc
        if t._trace is trace and t._v.index >= 0:
            cell._v, cell._trace = alias(trace, t._v, cell._v), trace
            note_entry(trace, cell, cell._v)
            trace.refs.append(ref(cell))
    else:
        value = enter(t, trace)
        cell = make(alias(trace, value, plain_kind(value)), trace)
        cell._vc = t._vc
    _join(t, Storage(cell, t._vc))


def _join(t: Any, store: Storage) -> None:
    t._store, t._shares = store, True
    if t._trace is not None:
        t._trace.memory.viewed = True
    members = store.members
    if len(members) >= store.room:  # `x.detach()` in a loop that never writes to `x`
        members[:] = [m for m in members if m() is not None]
        store.room = 16 + 2 * len(members)
    members.append(ref(t))


def unshare(t: Any) -> None:
    """Give a resting tensor that is all of its storage the array, once who shared it are gone."""
    store = t._store
    if t._lens or t is store.cell or t._stale is not None or store.cell._array is None:
        return
    if all(m() is None or m() is t for m in store.members):
        t._array, t._shares = store.cell._array, False
        if store.silent:
            note_own_memory(t)
        del t._store


def share(source: Any, out: Any, lens: Lens, *, view: bool, read: Lens | None = None) -> Any:
    """Make `out` share the storage of `source`, seen through `lens`: its view, or detached.

    Args:
      read: a lens that sees the same of the data, where autograd has no part in it.
    """
    with sharing:
        return _share(source, out, lens, view, lens if read is None else read)


def _share(source: Any, out: Any, lens: Lens, view: bool, read: Lens) -> Any:
    store = storage_of(source)
    _join(out, store)
    out._vc = source._vc
    out._lens = source._lens + read
    if view:
        out._base_ = source if source._base_ is None else source._base_
        out._blens = source._blens + lens
        if local.settings.view_replay or type(source._blens) is Replayed:
            out._blens = Replayed(out._blens)
    if source._dual_root is not None and view:
        root, start = source._dual_root
        out._dual_root = source if root is None else root, start
    return out


def adopt(source: Any, t: Any) -> None:
    """Make `t` share the storage of `source`, count versions with it and keep its own history."""
    with sharing:
        _join(t, storage_of(source))
        t._lens = source._lens


# Views that come as a tuple; what PyTorch allows with them differs.
MANY = frozenset({
    "unbind", "split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit",
})  # fmt: skip

_IN_ORDER = frozenset({"split", "split_with_sizes", "chunk", "tensor_split"})
_SELECT, _NARROW = TABLE["select"], TABLE["narrow"]


def share_views(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], outs: list[Any]) -> None:
    """Tie the results of a view op to its first argument."""
    source, mode = args[0], local.mode
    creation = "inference" if mode.inference else "" if mode.grad else "no_grad"
    many = op.name in MANY
    if many and not creation:
        creation = "multi"
    pieces = _pieces(op, args, kwargs, outs) if many and op not in PICKED else None
    for k, out in enumerate(outs):
        step = op if pieces is None else pick(op, k)
        read = None if pieces is None else pieces[k]
        if source._v.inference:  # shares memory, and autograd will never ask
            share(source, out, ((step, args[1:], kwargs),), view=False, read=read)
            continue
        share(source, out, ((step, args[1:], kwargs),), view=True, read=read)
        out._creation = _passed_on(source, creation)
        if not out._v.requires_grad and out._base_._tracked:
            flag(out, True)


def _pieces(op: Op, args: Any, kwargs: Any, outs: list[Any]) -> list[Lens | None]:
    """Return the lens of each result of a view op whose results are numbered pieces.

    A loop over minibatches (`X.split(10)`, `zip(X, Y)`) is one program so, not one for each.
    """
    given = dict(zip(op.parameters, args, strict=False)) | kwargs
    dim = given.get("dim", 0)
    if op.name == "unbind":
        return [((_SELECT, (dim, k), {}),) for k in range(len(outs))]
    lengths = [out._v.shape[dim] for out in outs]
    if op.name not in _IN_ORDER or sum(lengths) != args[0]._v.shape[dim]:
        return [None] * len(outs)
    starts = itertools.accumulate(lengths, initial=0)
    return [((_NARROW, (dim, k, n), {}),) for k, n in zip(starts, lengths, strict=False)]


def _passed_on(source: Any, creation: str) -> str:
    """Return the creation mark of a view of `source`; inference mode stays."""
    return source._creation if source._creation == "inference" else creation or source._creation


def share_strided(source: Any, out: Any, lens: Lens, blens: Lens) -> Any:
    """Make `out` a view of `source`.

    The lens `lens` reads it from the whole storage, `blens` from the base.
    """
    share(source, of_mode(out, source._v.inference), (), view=True)
    out._lens, out._blens = lens, blens
    mode = local.mode
    creation = "inference" if mode.inference else "" if mode.grad else "no_grad"
    out._creation = _passed_on(source, creation)
    if not out._v.requires_grad and out._base_._tracked:
        flag(out, True)
    return out


def flag(view: Any, requires_grad: bool) -> None:
    """Set `requires_grad` of a view without history to its base's; its gradient leads nowhere."""
    v = view._v
    kind = resting(v.aval, requires_grad, NOWHERE, v.inference, v.strides)
    if v.role or v.requires_grad == requires_grad or not is_differentiable(v.dtype):
        return
    if view._v.index >= 0 and view._trace is local.trace:
        view._v = tag(local.trace, view._v, kind)
        renew_entry(local.trace, view, view._v)
    else:
        view._v = kind


def flag_views(base: Any) -> None:
    """Tell the views of `base` that its `requires_grad` changed."""
    if base._store is not None and base._base_ is None:
        for member in base._store.members:
            m = member()
            if m is not None and m._base_ is base and m._stale is None:
                if m._behind and base._tracked:
                    make_stale(m)
                else:
                    note_flag(local.trace, m, m._v)
                    flag(m, base._tracked)


def of_mode(out: Any, inference: bool | None = None) -> Any:
    """Make a new tensor an inference tensor in inference mode, and only there; return it.

    Args:
      inference: whether it is to be one; None asks for the mode.
    """
    v, inference = out._v, local.mode.inference if inference is None else inference
    if v.inference != inference:
        kind = resting(v.aval, False, NOWHERE, inference, v.strides)
        out._v, out._counts = tag(local.trace, v, kind) if v.index >= 0 else kind, False
    return out


def detach(t: Any, own: bool = False) -> Any:
    """Make a tensor without history on the same storage, so that later writes reach both.

    Args:
      own: it counts its versions for itself, as `.data` does.
    """
    with sharing:
        return _detach(t, own)


def _detach(t: Any, own: bool) -> Any:
    trace = local.trace
    at_rest = t._v.index < 0 and t._array is not None
    if at_rest and not (own or t._shares or t._duals or t._v.inference):
        return detached(t)
    if at_rest and (t._store is None or t._store.cell._array is t._array):
        out = from_array(t._array, inference=t._v.inference)
        out._v = resting(out._v.aval, False, NOWHERE, t._v.inference, t._v.strides)
    else:
        value = without_grad(lambda: enter(t, trace))
        kind = plain_kind(value)
        value = alias(trace, value, kind, True) if own else apart(trace, value, kind)
        out = make(value, trace)
    if t._duals and out._v is t._v:
        out._v = keep_edge(trace, t._v, t._v)  # tangents are known by value
    share(t, out, (), view=False)
    if out._v.inference and not local.mode.inference:
        own = out._counts = True
    if own:
        out._vc = [0]
    return out
