"""Dual tensors of forward mode: tensors that carry tangents.

A dual tensor is a tensor with a tangent, a tensor of its own, for each open level. While a level
is open no step of the trie is remembered under its mode, so every op comes to `propagate.py`:
the op itself is recorded as usual, then its derivative (`JvpCall`) on the tangents. Tangents are
ordinary lazy tensors: they can be differentiated, and a level below carries its own through them.

A view of a dual has a view of the tangent, and a write writes the tangent, so views and writes
keep tangents right by the means that they have for values. A backward pass reads the tangents of
what ops took from `trace.graph.duals`: forward over reverse.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.dual_levels import levels_below, recording_levels, set_tangent
from ..._core.trie import local
from ..._core.vmap_checks import adopt_example
from ..._dispatch.conj_neg_bits import bits, same_meta, storage_numel
from ..._dispatch.record import apply
from ..._dispatch.tangents import get_tangent

_ZEROS = TABLE["zeros"]
_VIEW = Op(
    TABLE["alias"].fn, name="alias", backward="ViewBackward0", view=True,
    write=TABLE["alias"].write,
)  # fmt: skip
_PRIMAL = Op(
    TABLE["alias"].fn, name="alias", backward="Identity", view=True, write=TABLE["alias"].write,
)  # fmt: skip


def view_with_levels(t: Any, levels: tuple[int, ...], op: Op = _VIEW) -> Any:
    """Return a tensor that shares the storage of `t` and carries only these levels' tangents."""
    with recording_levels(levels):
        out = apply(op, t)
    out._dual_root = None, len(out._blens)
    return out


def view_primal(t: Any, levels: tuple[int, ...]) -> Any:
    """Return the primal of `t` as `unpack_dual` does; its tangents of these levels stay."""
    return view_with_levels(t, levels, _PRIMAL)


def make_dual(t: Any, along: Any, level: int, op: Op = _VIEW) -> Any:
    """Return a tensor that shares the storage of `t` and has a tangent.

    Args:
      op: the view op that records it.

    Raises:
      RuntimeError: if `t` carries one at this level, or for a tangent of another shape.
    """
    if get_tangent(t, level) is not None:
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
    if get_tangent(along, level) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level"
            f"{level - 1} is not supported."
        )
    out = view_with_levels(t, tuple([n for n in local.mode.dual if n != level]), op)
    if not same_meta(t, along):
        with recording_levels(levels_below(level)):
            along = _laid_out_as(t, along)
    set_tangent(out, level, along)
    return out


def _laid_out_as(t: Any, along: Any) -> Any:
    """Copy a tangent into memory that is laid out as that of `t`, so that it has the same views."""
    conj, neg = bits(t)
    if storage_numel(t) == along.numel() and t.is_contiguous():
        part = adopt_example(along, apply(_ZEROS, tuple(t.shape), along._v.dtype))
        if not conj and not neg:
            return part.copy_(along)
    else:
        # An example of a vmap lies as the batch does, in more memory than is its own.
        spans = 1 + sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True))
        held = max(storage_numel(t), t.storage_offset() + spans)
        whole = adopt_example(along, apply(_ZEROS, (held,), along._v.dtype))
        part = whole.as_strided(t.size(), t.stride(), t.storage_offset())
    part = part.conj() if conj else part
    part = part._neg_view() if neg else part
    return part.detach().copy_(along)
