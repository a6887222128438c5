"""PyTorch's `torch.nn.utils.stateless`: `functional_call` by its old name."""

from __future__ import annotations

import warnings
from typing import Any

from ...func._functional_call import functional_call as _functional_call

__all__ = ["functional_call"]

_DEPRECATED = (
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
    "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead which "
    "is a drop-in replacement."
)


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with the given parameters and buffers; `leafax.func.functional_call` is meant.

    Args:
      parameters_and_buffers: tensors by dotted path.
      args: a tuple of positional arguments, or the only one.
      kwargs: keyword arguments.
      tie_weights: a value for one path is taken for all paths of the same tensor.
      strict: raise for a path that is missing or that the module does not have.
    """
    warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
