"""Quantiles, means without NaN, gathers and diagonals that PyTorch makes of other ops."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.dimensions import broadcast_shapes
from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.op import TABLE, Op

from ..._autograd.formulas.scalar_ops import times
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._storage.lay_out import lay_out
from ..._storage.write import written
from ..creation.factories import full_like
from ..creation.from_data import tensor
from .registry import composes


def _inner(name: str, backward: str) -> Op:
    """Make the op that PyTorch runs in place on a tensor that nobody else has seen."""
    return Op(TABLE[name].fn, name=f"{name}_", backward=backward)


_SQUEEZED = _inner("squeeze", "SqueezeBackward4")
_UNSQUEEZED = _inner("unsqueeze", "UnsqueezeBackward1")
_TRANSPOSED = _inner("transpose", "TransposeBackward1")
# Says nothing but whether `q` can be one; the ops that the quantile is made of do not ask.
_CHECKED = Op(
    lambda input, q: q, name="quantile", differentiable=False, check=TABLE["quantile"].check
)
_GATHER, _LERP, _EXPAND = TABLE["gather"], TABLE["lerp"], TABLE["expand"]
_REMAINDER = TABLE["remainder"]


@composes("diagflat")
def _diagflat(input: Any, offset: int) -> Any:
    return apply(TABLE["diag_embed"], input.contiguous().view(-1), offset, 0, 1)


@composes("nanmean")
def _nanmean(input: Any, dim: Any, keepdim: bool, *, dtype: Any) -> Any:
    if input.is_complex():
        return None
    count = input.detach().isnan().logical_not().sum(dim, keepdim)
    return apply(TABLE["nansum"], input, dim, keepdim, dtype=dtype) / count


@composes("take_along_dim")
def _take_along_dim(input: Any, indices: Any, dim: int | None) -> Any:
    if dim is None:
        return apply(_GATHER, input.view(-1), 0, indices.view(-1))
    if not input.dim():
        return None
    dim %= input.dim()
    ours, theirs = list(input.shape), list(indices.shape)
    ours[dim] = theirs[dim]
    shape = list(broadcast_shapes(tuple(ours), tuple(theirs)))
    wide = [*shape]
    wide[dim] = input.shape[dim]
    x, at = apply(_EXPAND, input, tuple(wide)), apply(_EXPAND, indices, tuple(shape))
    if input.shape[dim]:  # they wrap
        at = apply(_REMAINDER, at, input.shape[dim])
    return apply(_GATHER, x, dim, at)


@composes("quantile")
def _plain_quantile(
    input: Any, q: Any, dim: int | None, keepdim: bool, *, interpolation: str
) -> Any:
    return _quantile(input, q, dim, keepdim, interpolation, False)


@composes("nanquantile")
def _nanquantile(input: Any, q: Any, dim: int | None, keepdim: bool, *, interpolation: str) -> Any:
    return _quantile(input, q, dim, keepdim, interpolation, True)


def _quantile(
    input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool
) -> Any:
    if isinstance(q, Handle):
        with no_grad():
            apply(_CHECKED, input, q)
    else:
        q = tensor(q, dtype=input.dtype)
    shape = list(input.shape)
    if dim is None:
        values = input.flatten().sort()[0]
        kept = [1] * len(shape) if keepdim else []
    else:
        at = dim % max(len(shape), 1)
        last = not shape or at == len(shape) - 1
        x = input if last else input.unsqueeze(-1).transpose(at, -1)
        values = x.sort()[0]
        kept = [n for d, n in enumerate(shape) if d != at or keepdim]
        if shape and keepdim:
            kept[at] = 1
    length = values.shape[-1] if values.dim() else 1
    values = values.view([*kept, length])
    if skip_nan:
        ranks = q * (values.isnan().logical_not().sum(-1, True) - 1)
        ranks = ranks.masked_fill(ranks < 0, 0)
    else:
        ranks = times(q, length - 1)
        nan = values.isnan().any(-1, True)
        wide = broadcast_shapes(tuple(ranks.shape), tuple(nan.shape))
        ranks = ranks.expand(wide).masked_fill(nan.expand(wide), length - 1)
    rounding = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
    if rounding is not None:
        ranks = getattr(ranks, rounding)()
    below = ranks.long()
    out = apply(_GATHER, values, -1, below)
    if rounding is None:
        weight = full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
        above = apply(_GATHER, values, -1, ranks.ceil().long())
        out = apply(_LERP, out, above, weight)
    inside = int(rounding is None)  # `lerp_`
    if not q.dim():
        return written(apply(_SQUEEZED, out, -1), inside + 1)
    out = apply(_TRANSPOSED, apply(_UNSQUEEZED, out, 0), 0, -1)
    *outer, inner = contiguous_strides((*kept, q.shape[0]))  # the quantiles of one lie together
    return written(lay_out(apply(_SQUEEZED, out, -1), (inner, *outer)), inside + 3)
