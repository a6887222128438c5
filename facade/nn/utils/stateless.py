"""PyTorch's `torch.nn.utils.stateless`: `functional_call` by its old name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...func import _functional_call as _calls
from ...func._functional_call import functional_call as _functional_call

__all__ = ["functional_call"]

_DEPRECATED = (
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
    "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead which "
    "is a drop-in replacement."
)


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Put tensors in the place of a module's own until the block ends.

    Args:
      parameters_and_buffers: tensors by dotted path; what the block assigns is put back into it.
      tie_weights: a value for one path is taken for all paths of the same tensor.
      strict: raise for a path that is missing or that the module does not have.
      stack_weights: accepted for PyTorch's sake: a path stands in a dict once.
    """
    own: dict[str, Any] = {}
    if tie_weights or strict:
        own = dict(module.named_parameters(remove_duplicate=False))
        own |= dict(module.named_buffers(remove_duplicate=False))
    given = dict(parameters_and_buffers)
    if tie_weights:
        given = _calls._tied(own, parameters_and_buffers)
    if strict:
        _calls._check(module, own, given)
    with _calls._swapped(module, given, parameters_and_buffers):
        yield


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
