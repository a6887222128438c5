"""Views by size and stride, and ops that copy where a view is not possible."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any

from leafax.functional.ops.shape.strides import NOT_VIEWABLE, Layout
from leafax.functional.program.op import TABLE, Op

from .._core.dual_levels import levels_below, recording_levels, set_tangent
from .._core.grad_modes import within
from .._core.trie import Mode, local
from .._core.view_ops import BY_NAME
from .._core.vmap_checks import outside_vmap
from .._rules.strides.layouts import laid
from .._storage.as_strided_outside import MEMORY, has_gaps, lens_from, places, reach
from .._storage.enter import enter
from .._storage.shared_storage import share, share_strided, storage_of
from .._storage.strides import COPYING, after, is_contiguous, layout, must_copy
from .._tracing.inputs import make
from . import record
from .tangents import get_tangent


def view_or_copy(op: Op, t: Any, args: Any, kwargs: Any) -> Any:
    """Return the copy, or the view with its own node, where `op` gives no plain view."""
    if op.name == "as_strided":
        example = _of_example(t, *args, **kwargs) if local.vmap is not None else None
        if example is not None or not (t._lens or t._v.strides is not None):
            return example
        return strided(t, *args, **kwargs)
    if op.name == "view_as_complex":
        _check_pairs(layout(t), t._v.dtype)
    if (
        op.name in ("view", "unflatten")
        and t._v.numel
        and after(op, layout(t), args, kwargs) is None
    ):
        raise RuntimeError(NOT_VIEWABLE)
    if op.name not in COPYING or op in _aliases or is_contiguous(t):
        return None
    if not must_copy(op, t, args, kwargs):
        # PyTorch's watch over what is saved is a dispatch mode, under which this is a `view`.
        watched = local.autograd.guard is not None
        alias = _aliasing(op, "ViewBackward0" if watched else "ReshapeAliasBackward0")
        return record.apply(alias, t, *args, **kwargs)
    made = op if op.name == "ravel" else _unsafe(op)  # `ravel` is `contiguous().view(-1)`
    return record.apply(made, record.apply(TABLE["contiguous"], t), *args, **kwargs)


def _of_example(t: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Take `as_strided` of a tensor that differs among a `vmap`'s examples; None of others."""
    assert local.vmap is not None
    return local.vmap.as_strided(t, size, stride, storage_offset)


def _check_pairs(found: Layout, dtype: Any) -> None:
    """Raise unless the last dim holds pairs that lie as complex numbers do."""
    if dtype.kind != "f" or found.shape[-1:] != (2,):
        return  # the op itself refuses it
    if found.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    # How far apart the elements of a dim with one of them are does not matter.
    if any(s % 2 and n != 1 for s, n in zip(found.strides, found.shape[:-1], strict=False)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if found.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")


def strided(
    t: Any, size: Any, stride: Any, storage_offset: int | None = None,
    node: str = "AsStridedBackward0",
) -> Any:  # fmt: skip
    """Take `as_strided` of a view, counting in its storage's elements; None where it is plain.

    Args:
      node: what the result's node is called.
    """
    out = _strided(t, size, stride, storage_offset, node)
    if out is not None and local.mode.dual:  # tangents lie as what they belong to does
        for level in local.mode.dual:
            along = get_tangent(t, level)
            if along is not None:
                offset = int(layout(t).offset) if storage_offset is None else storage_offset
                with recording_levels(levels_below(level)), outside_vmap():
                    set_tangent(out, level, along.as_strided(size, stride, offset))
    return out


def _strided(t: Any, size: Any, stride: Any, storage_offset: int | None, node: str) -> Any:
    have = layout(t)
    have = have._replace(offset=int(have.offset))  # a tensor said where it begins
    offset = have.offset if storage_offset is None else storage_offset
    if t._base_ is not None and t._base_._lens and not have.offset and is_contiguous(t):
        if offset + reach(size, stride) <= t._v.numel:
            return None  # it counts from where the storage begins, and stays inside
    spelt = (tuple(size), tuple(stride), offset)
    # Views as another dtype come first: strides count elements of that.
    steps: list[Any] = []
    cell = laid(storage_of(t).cell._v)
    if has_gaps(cell):
        steps = [(MEMORY, (cell.strides,), {})]
    elif list(cell.strides) != sorted(cell.strides, reverse=True):  # dims in another order
        order = sorted(range(len(cell.shape)), key=lambda d: -cell.strides[d])
        steps = [(TABLE["permute"], (tuple(order),), {})]
    steps += [step for step in t._lens if step[0].name in BY_NAME]
    trace = local.trace
    storage = make(enter(storage_of(t).cell, trace), trace)
    kept: tuple[Any, ...] = ()
    for step in steps:
        for op, more, named in (*_in_rows(storage, step), step):
            storage = record.apply(op, storage, *more, **named)
            kept += ((op, more, named),)
    made = _from_storage(node), t, storage, *spelt, have.shape, have.strides, have.offset
    with within(Mode.of(False, True, None)) if t._v.inference else nullcontext():
        out = record.apply(*made)
    last: Any = (TABLE["as_strided"], spelt, {})
    lens, base = (*kept, last), t if t._base_ is None else t._base_
    if t._v.inference:  # as other views of what autograd never asks for
        return _beside(t, out, lens)
    if not base._lens:
        return share_strided(t, out, lens, lens)
    # Its base is itself a part of the storage: what lies in `t`, or in it, is a view of that.
    want = Layout(*spelt)
    start = offset - have.offset
    if start >= 0 and start + reach(size, stride) <= t._v.numel and is_contiguous(t):
        again: Any = (*t._blens, (TABLE["as_strided"], (*spelt[:2], start), {}))
    else:
        again = lens_from(base, layout(base), lens, want)
    if again is not None:
        return share_strided(t, out, lens, again)
    return _beside(t, out, lens)  # autograd knows no way to it from the base


def _beside(t: Any, out: Any, lens: Any) -> Any:
    """Make `out` share the storage of `t`, seen through `lens`, and be no view of it."""
    share(t, out, (), view=False)
    out._lens = lens
    return out


def _in_rows(storage: Any, step: Any) -> tuple[Any, ...]:
    """Return views of a storage by which a view as another dtype sees all whole elements."""
    op, args, _ = step
    have, last = storage.itemsize, storage.shape[-1] if storage.dim() else 0
    if op.name == "view_as_complex":
        row, fits = 2, last == 2
    elif op.name == "view_dtype":
        row = max(args[0].itemsize // have, 1)
        fits = storage.dim() > 0 and last % row == 0
    else:
        return ()
    if fits:
        return ()
    whole = storage.numel() // row
    reshape, narrow = TABLE["reshape"], TABLE["narrow"]
    return (
        (reshape, ((-1,),), {}),
        (narrow, (0, 0, whole * row), {}),
        (reshape, ((whole, row),), {}),
    )


def _read_storage(
    input: Any, storage: Any, size: Any, stride: Any, offset: int, shape: Any, strides: Any,
    start: int,
) -> Any:  # fmt: skip
    """Put `input` into its storage and read this by size and stride."""
    own = places(Layout(shape, strides, start))
    whole = storage.reshape(-1).at[own.reshape(-1)].set(input.reshape(-1))
    return _AS_STRIDED(whole, size, stride, offset)


_AS_STRIDED = TABLE["as_strided"].fn


@cache
def _from_storage(node: str) -> Op:
    return Op(_read_storage, name="as_strided", backward=node)


_aliases: set[Op] = set()


@cache
def _aliasing(op: Op, node: str) -> Op:
    """Make a variant of `reshape` that gives a view of a tensor that is not contiguous."""
    alias = Op(op.fn, name=op.name, backward=node, view=True, write=op.write, sizes=op.sizes)
    _aliases.add(alias)
    return alias


@cache
def _unsafe(op: Op) -> Op:
    return Op(op.fn, name=op.name, backward="UnsafeViewBackward0", sizes=op.sizes)


record.view_or_copy = view_or_copy
