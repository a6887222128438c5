"""Functions of `torch` that packages call, and that few scripts do."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from .._core.default_dtype import get_default_dtype
from .._core.dtypes import bool as bool_dtype
from .._core.dtypes import int32, int64
from .._core.handle import Handle
from .._ops.calls.functions import function as _function
from .._ops.composites.asserts import _check_with
from .._ops.creation.dlpack import frombuffer
from .._ops.creation.factories import arange
from .._ops.creation.from_data import tensor
from .._ops.creation.mapped_file import mapped_file

_searchsorted, _stack = (_function(_TABLE[name]) for name in ("searchsorted", "stack"))


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


def _convert_indices_from_coo_to_csr(input: Any, size: int, *, out_int32: bool = False) -> Any:
    """Return where each row begins in sorted numbers of rows, and how many there are at the end.

    Args:
      input: the row of each element, sorted, of shape (n,).
      size: how many rows there are.
      out_int32: whether the result, of shape (size + 1,), is of int32.
    """
    rows = arange(size + 1, dtype=input.dtype, device=input.device)
    return _searchsorted(input, rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Any, col_indices: Any, *, out_int32: bool = False, transpose: bool = False
) -> Any:
    """Return the rows and columns of elements, two rows of a matrix, from where each row begins.

    Args:
      crow_indices: where each row begins, and the number of elements at the end.
      col_indices: the column of each element.
      out_int32: whether the result is of int32.
      transpose: whether the columns come first.
    """
    places = arange(col_indices.numel(), dtype=crow_indices.dtype, device=crow_indices.device)
    rows = _searchsorted(crow_indices[1:], places, right=True)
    both = [col_indices, rows] if transpose else [rows, col_indices]
    return _stack([t.to(int32 if out_int32 else int64) for t in both])


def from_file(
    filename: Any, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Return the first numbers of a file of numbers.

    Args:
      filename: a path.
      shared: False or None; what is written to JAX's arrays does not get into files.
      size: how many numbers.
      dtype: their type.
      options: `device`, `requires_grad` and others that `tensor.to` and leaves have.

    Raises:
      RuntimeError: there is no such file, or it has fewer bytes.
      NotImplementedError: for `shared=True`.
    """
    dtype = dtype or get_default_dtype()
    data = mapped_file(filename, bool(shared), (size or 0) * dtype.itemsize)
    made = frombuffer(data, dtype=dtype) if size else tensor([], dtype=dtype)
    made = made if options.get("device") is None else made.to(options["device"])
    return made.requires_grad_() if options.get("requires_grad") else made
