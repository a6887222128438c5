"""Forward mode: tensors that carry tangents, and how ops carry them on.

A dual tensor is a tensor with a tangent, a tensor of its own, for each open level. While a level
is open no step of the trie is remembered under its mode, so every op comes to `propagate.py`:
the op itself is recorded as usual, then its derivative (`JvpCall`) on the tangents. Tangents are
ordinary lazy tensors: they can be differentiated, and a level below carries its own through them.

A view of a dual has a view of the tangent, and a write writes the tangent, so views and writes
keep tangents right by the means that they have for values. A backward pass reads the tangents of
what ops took from `Trace.duals`: forward over reverse.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from leafax.functional.program.op import TABLE, Op

from ..._core.grad_modes import within
from ..._core.trie import Mode, local
from ..._storage.conj_neg_bits import bits, same_meta, storage_numel
from ..._tracing.record import apply


class Duals(dict[int, Any]):
    """A tensor's tangents by level."""

    __slots__ = ("__weakref__",)


class _Open(threading.local):
    """The thread's open levels; for each the tangents that its end clears."""

    def __init__(self) -> None:
        self.levels: list[list[ref[Duals]]] = []
        self.enabled = True  # ops carry tangents on


opened = _Open()
_VIEW = Op(
    TABLE["alias"].fn, name="alias", backward="ViewBackward0", view=True,
    write=TABLE["alias"].write,
)  # fmt: skip
_PRIMAL = Op(
    TABLE["alias"].fn, name="alias", backward="Identity", view=True, write=TABLE["alias"].write,
)  # fmt: skip


@contextmanager
def seeing(levels: tuple[int, ...]) -> Iterator[None]:
    """Record with the tangents of these levels only."""
    mode = local.mode
    with within(Mode.of(mode.enabled, mode.inference, mode.autocast, dual=levels)):
        yield


def switch(enabled: bool) -> None:
    opened.enabled = enabled
    now = local.mode
    local.set_mode(Mode.of(now.enabled, now.inference, now.autocast, dual=open_levels()))


def open_levels() -> tuple[int, ...]:
    """The levels that ops carry tangents of outside of inference mode."""
    return tuple(range(1, len(opened.levels) + 1)) if opened.enabled else ()


@contextmanager
def switched(mode: bool) -> Iterator[None]:
    """Let ops carry tangents on, or not."""
    before, now = opened.enabled, local.mode
    if before is not mode:
        switch(mode)
    try:
        yield
    finally:
        opened.enabled = before
        local.set_mode(now)


def enter_level() -> int:
    """Open a level; returns its number."""
    opened.levels.append([])
    number = len(opened.levels)
    mode = local.mode
    levels = mode.dual
    if opened.enabled and not mode.inference:
        levels = (*levels, number)
    local.set_mode(Mode.of(mode.enabled, mode.inference, mode.autocast, dual=levels))
    return number


def exit_level() -> None:
    """Close the last level: its tangents are gone."""
    number = len(opened.levels)
    for holder in opened.levels.pop():
        duals = holder()
        if duals is not None:
            duals.pop(number, None)
    mode = local.mode
    levels = tuple([n for n in mode.dual if n != number])
    local.set_mode(Mode.of(mode.enabled, mode.inference, mode.autocast, dual=levels))


def below(level: int) -> tuple[int, ...]:
    return tuple([n for n in local.mode.dual if n < level])


# ---------------------------------------------------------------- what a tensor carries


def hold(t: Any, level: int, tangent: Any) -> None:
    """Let `t` carry this tangent."""
    if t._duals is None:
        t._duals = Duals()
    t._duals[level] = tangent
    opened.levels[level - 1].append(ref(t._duals))


def copy_duals(source: Any, out: Any) -> Any:
    """Let `out`, the same values, carry what `source` does; returns `out`."""
    if source._duals:
        for level, tangent in source._duals.items():
            hold(out, level, tangent)
    return out


def tangent(t: Any, level: int) -> Any:
    """What `t` carries at a level, or None; a view has a view of its base's tangent."""
    duals = t._duals
    if duals is not None and level in duals:
        return duals[level]
    base, lens = base_of(t)
    if base is None or base._duals is None or level not in base._duals:
        return None
    found = through(base._duals[level], lens, level)
    hold(t, level, found)
    return found


def carries(t: Any) -> bool:
    """Whether `t` has a tangent of an open level."""
    return any(tangent(t, level) is not None for level in local.mode.dual)


def base_of(t: Any) -> tuple[Any, tuple[Any, ...]]:
    """The tensor that `t` is a view of in forward mode, and how to get from it to `t`."""
    if t._dual_root is None:
        return t._base_, t._blens
    root, start = t._dual_root
    return (None, ()) if root is None else (root, t._blens[start:])


def through(found: Any, lens: Any, level: int) -> Any:
    with seeing(below(level)):
        for op, args, kwargs in lens:
            found = apply(op, found, *args, **kwargs)
    return found


def view(t: Any, levels: tuple[int, ...], op: Op = _VIEW) -> Any:
    """`t` as a tensor that shares its storage and carries only these levels' tangents."""
    with seeing(levels):
        out = apply(op, t)
    out._dual_root = None, len(out._blens)
    return out


def primal(t: Any, levels: tuple[int, ...]) -> Any:
    """What `unpack_dual` gives of `t`, whose tangents of these levels stay."""
    return view(t, levels, _PRIMAL)


def make_dual(t: Any, along: Any, level: int, op: Op = _VIEW) -> Any:
    """`t` with a tangent, as a tensor that shares its storage.

    Args:
      op: which records that.

    Raises:
      RuntimeError: if `t` carries one at this level, or for a tangent of another shape.
    """
    if tangent(t, level) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {level - 1} is not supported."
        )
    if tuple(t.shape) != tuple(along.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(t.shape)} while the given "
            f"forward gradient is of size {list(along.shape)}."
        )
    if tangent(along, level) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level"
            f"{level - 1} is not supported."
        )
    out = view(t, tuple([n for n in local.mode.dual if n != level]), op)
    if not same_meta(t, along):
        with seeing(below(level)):
            along = _laid_out_as(t, along)
    hold(out, level, along)
    return out


def _laid_out_as(t: Any, along: Any) -> Any:
    """A copy of `along` of which can be viewed what can be viewed of `t`."""
    from ..._ops.creation.factories import batched_as, zeros

    conj, neg = bits(t)
    if storage_numel(t) == along.numel() and t.is_contiguous():
        part = batched_as(along, zeros(t.size(), dtype=along.dtype))
        if not conj and not neg:
            return part.copy_(along)
    else:
        # An example of a vmap lies as the batch does, in more memory than is its own.
        spans = 1 + sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True))
        held = max(storage_numel(t), t.storage_offset() + spans)
        whole = batched_as(along, zeros(held, dtype=along.dtype))
        part = whole.as_strided(t.size(), t.stride(), t.storage_offset())
    part = part.conj() if conj else part
    part = part._neg_view() if neg else part
    return part.detach().copy_(along)
