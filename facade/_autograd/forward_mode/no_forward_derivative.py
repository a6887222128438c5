"""Ops that PyTorch has no forward derivative for: they refuse tensors with tangents.

JAX could differentiate them. They refuse all the same, so that a program which runs here runs
in PyTorch.
"""

from __future__ import annotations

import re
from typing import Any

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._dispatch.tangents import has_tangent

# Our op and the name in PyTorch's message.
_NAMES: dict[str, str] = {
    "cdist": "_cdist_forward",
    "cholesky": "cholesky",
    "geqrf": "geqrf",
    "grid_sampler_3d": "grid_sampler_3d",
    "igamma": "igamma",
    "igammac": "igammac",
    "index_reduce": "index_reduce",
    "nn.functional._ctc_loss": "_ctc_loss",
    "nn.functional.multi_margin_loss": "multi_margin_loss",
    "nn.functional.multilabel_margin_loss": "multilabel_margin_loss_forward",
    "ormqr": "ormqr",
    "pdist": "_pdist_forward",
    "segment_reduce": "segment_reduce",
    "special.zeta": "special_zeta",
}
_UNDERIVED = re.compile(r"derivative for (aten::\w+) is not implemented")


def refuse_tangents(op: Op, tensors: list[Any], suffix: str = "") -> None:
    """Raise PyTorch's error if `op` has no forward derivative.

    Args:
      suffix: what the variant in place has at the end of its name.
    """
    none = _UNDERIVED.match(op.no_gradient[1]) if op.no_gradient is not None else None
    if none is not None:
        raise _unsupported(none[1] + suffix)
    name = _NAMES.get(op.qualified)
    if op.qualified in ("nn.functional.grid_sample", "nn.functional._grid_sample3d"):
        name = f"grid_sampler_{tensors[0].dim() - 2}d"
    if name is not None:
        raise missing_derivative_error(name + suffix, in_place=bool(suffix))


def refuse_any_tangent(name: str, *given: Any) -> None:
    """Raise PyTorch's error for ATen's function of this name if a tensor has a tangent."""
    if any(isinstance(x, Handle) and has_tangent(x) for x in given):
        raise _unsupported(f"aten::{name}")


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(f"Trying to use forward AD with {name} that does not support it.")


def missing_derivative_error(name: str, in_place: bool = False) -> NotImplementedError:
    """Make PyTorch's error for an op that has no forward derivative yet."""
    more = " or submit a PR adding the implementation to derivatives.yaml"
    return NotImplementedError(
        f"Trying to use forward AD with {name} that does not support it because it has not been "
        "implemented yet.\nPlease file an issue to PyTorch at "
        "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can "
        f"prioritize its implementation{'.' if in_place else more}"
    )
