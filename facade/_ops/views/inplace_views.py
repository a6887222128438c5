"""Views in place: `t_`, `transpose_`, `squeeze_`, ...: the tensor stays, how it is read changes.

PyTorch changes sizes and strides of the tensor itself. Here its lens grows by the view op, and
where it is the base of other views, theirs begin with the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.dual_levels import levels_below, recording_levels
from ..._core.trie import NODE, NOWHERE, local, resting
from ..._core.view_ops import Lens
from ..._dispatch.record import record
from ..._dispatch.strided_views import strided
from ..._dispatch.tangents import get_tangent
from ..._signatures.wrap_composites import parsed
from ..._storage.autograd_roles import keep_edge, tag
from ..._storage.enter import enter, plain_kind
from ..._storage.shared_storage import storage_of
from ..._storage.strides import layout
from ..._storage.write import bump, make_stale, rebind
from ..calls.functions import named, uniform
from ..writes.apply_inplace import check_inplace, frozen, written_anyway

# The number in the node's name: PyTorch lists these after the op's own derivatives.
_NODES = {
    "t": "TBackward1", "transpose": "TransposeBackward1", "swapaxes": "TransposeBackward1",
    "swapdims": "TransposeBackward1", "unsqueeze": "UnsqueezeBackward1",
    "as_strided": "AsStridedBackward1",
}  # fmt: skip


def methods() -> dict[str, Callable[..., Any]]:
    """Return the methods by name."""
    names = ("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze", "as_strided")
    return {f"{name}_": _method(name) for name in names}


def _method(name: str) -> Callable[..., Any]:
    op = TABLE[name]

    def fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = (args,) if name == "squeeze" and len(args) > 1 else args
        args, kwargs = uniform(op, (self, *args), kwargs)
        return _view_in_place(name, self, args[1:], kwargs)

    return parsed(named(fn, op, f"{name}_"), name, method=True)


def _node(name: str, args: Any, kwargs: Any) -> str:
    if name != "squeeze":
        return _NODES[name]
    dim = args[0] if args else kwargs.get("dim")
    return f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}"


@cache
def _variant(op: Op, node: str) -> Op:
    return Op(
        op.fn, name=op.name + "_", backward=node, view=True, numbers=op.numbers, write=op.write,
        sizes=op.sizes,
    )  # fmt: skip


def _view_in_place(name: str, t: Any, args: Any, kwargs: Any) -> Any:
    check_inplace(t)
    if frozen(t):
        with written_anyway():
            return _view_in_place(name, t, args, kwargs)
    if local.mode.dual:
        tangents = {level: get_tangent(t, level) for level in local.mode.dual}
        with recording_levels(()):
            _view_in_place(name, t, args, kwargs)
        for level, along in tangents.items():
            if along is not None:
                with recording_levels(levels_below(level)):
                    _view_in_place(name, along, args, kwargs)
        return t
    op, lost = TABLE[name], (t._stale, t._node, t._out)
    if name == "t" and t.dim() > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {t.dim()}D")
    others = _views(t)
    back: Lens = _back(name, t, args, kwargs) if others else ()
    node, whole = _node(name, args, kwargs), None
    if name == "as_strided" and (t._lens or t._v.strides is not None):
        whole = strided(t, *args, **{**kwargs, "node": node})
    if whole is not None:
        trace = local.trace
        value = enter(whole, trace)
        if value.role != NODE:  # made without gradients: its history is that of `t`
            value = tag(trace, value, plain_kind(value))
    else:
        state, trace = record(_variant(op, node), (t, *args), kwargs)
        assert state.value is not None
        value = state.value
    recorded = value.role == NODE
    old = enter(t, trace)
    if old.requires_grad and not value.requires_grad and old.role:
        local.turned = True
        value = keep_edge(trace, value, old)
        if value.edge in trace.sources:
            trace.sources[value] = trace.sources[value.edge]
    store = storage_of(t)
    bump(t)
    cell = enter(store.cell, trace)
    plain = resting(cell.aval, False, NOWHERE, cell.inference)
    if t._vc is store.vc:
        number, version = cell.storage, cell.version + 1
        rebind(store.cell, tag(trace, cell, plain, number, version))
    else:  # `.data` counts its own
        number, version = old.storage, old.version + 1
        rebind(store.cell, tag(trace, cell, plain))
    rebind(t, tag(trace, value, value, number, version))
    step = ((op, args, kwargs),)
    t._lens = t._lens + step if whole is None else whole._lens
    if t._base_ is not None:
        t._blens = t._blens + step if whole is None else whole._blens
        if not recorded:
            make_stale(t)
            if t._creation and lost[0] is not None:  # errors name the node that it had
                t._stale, t._node, t._out = lost
    for other in others:
        other._blens = back + other._blens
    for member in store.members:
        m = member()
        if m is not None and m is not t and m._vc is t._vc:
            make_stale(m)
    return t


def _views(t: Any) -> list[Any]:
    if t._store is None:
        return []
    found = [m() for m in t._store.members]
    return [m for m in found if m is not None and m._base_ is t]


def _back(name: str, t: Any, args: Any, kwargs: Any) -> Lens:
    """From the tensor's new shape to its old one."""
    if name in ("t", "transpose", "swapaxes", "swapdims"):
        return ((TABLE[name], args, kwargs),)
    shape = tuple(t.shape)
    if name in ("squeeze", "unsqueeze"):
        return ((TABLE["view"], (shape,), {}),)
    found = layout(t)
    return ((TABLE["as_strided"], (shape, found.strides, found.offset), {}),)
