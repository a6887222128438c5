"""`cosine_similarity`, as PyTorch makes it: the sum of products of what is divided by its norm."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafax.functional.ops.shape.dimensions import broadcast_shapes
from leafax.functional.program.dtypes import default_float, is_floating, result_type, scalar_name
from leafax.functional.program.op import TABLE

from ..._core.dtypes import of
from ..._core.grad_modes import no_grad
from ..._core.trie import local
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._ops.autocast.casts import operands
from ..._signatures.wrap_composites import parsed

_COSINE, _DIV, _MUL = TABLE["cosine_similarity"], TABLE["div"], TABLE["mul"]
_NORM, _EXPAND = TABLE["linalg.vector_norm"], TABLE["expand"]


@in_one_step
@parsed
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Take the cosine of the angle along a dim.

    Args:
      x1, x2: floating point, or integers next to such; broadcast to one shape.
      dim: the dim that the vectors lie along; the result is without it.
      eps: what norms are at least.

    Raises:
      RuntimeError: if the common dtype is not floating point, or the shapes do not broadcast.

    >>> import leafax
    >>> leafax.cosine_similarity(leafax.ones(2, 3), leafax.ones(3), dim=-1).shape
    torch.Size([2])
    """
    if local.mode.autocast is not None:
        x1, x2 = operands(_COSINE, (x1, x2))
    facts = [_Fact(x._v.dtype, x.dim()) for x in (x1, x2)]
    common = result_type(*facts, default_float=default_float())
    if not is_floating(common):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(common)}"
        )
    x1, x2 = (x.to(of(common)) if x._v.dtype.kind in "biu" else x for x in (x1, x2))
    return _composed(x1, x2, dim, eps)


def _composed(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    if tuple(x1.shape) != tuple(x2.shape):
        shape = tuple(broadcast_shapes(tuple(x1.shape), tuple(x2.shape)))
        x1, x2 = apply(_EXPAND, x1, shape), apply(_EXPAND, x2, shape)
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    norms = [apply(_NORM, x, 2, dim, True).clone() for x in (x1, x2)]
    with no_grad():  # the bound takes no part in gradients
        for norm in norms:
            norm.clamp_min_(eps)
    second = apply(_DIV, x2, norms[1])  # PyTorch divides it first, so backward comes to it last
    return apply(_MUL, apply(_DIV, x1, norms[0]), second).sum(dim)


class _Fact(NamedTuple):
    """Hold what decides on a common dtype."""

    dtype: Any
    ndim: int
