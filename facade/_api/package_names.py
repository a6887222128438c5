"""Functions of `torch` that packages call, and that few scripts do."""

from __future__ import annotations

from typing import Any

from .._core.dtypes import bool as bool_dtype
from .._core.dtypes import int64
from .._core.handle import Handle
from .._ops.composites.asserts import _check_with
from .._ops.creation.from_data import tensor


def _shape_as_tensor(input: Any) -> Any:
    """Return a tensor's shape as a tensor of integers."""
    return tensor(tuple(input.shape), dtype=int64)


def _check_tensor_all_with(error: type[Exception], cond: Any, message: Any = None) -> None:
    """Raise an error unless all elements are true; runs the program."""
    if not isinstance(cond, Handle):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    found: Any = cond
    if found.dtype is not bool_dtype:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {found.dtype}")
    _check_with(error, bool(found.all().item()), message)


def get_device(input: Any) -> Any:
    """Return the number of a tensor's GPU, -1 for the CPU."""
    return input.get_device()


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """Return the gradient of `softmax` from its result."""
    product = grad_output * output
    made = product - output * product.sum(dim, keepdim=True)
    return made.to(input_dtype)
