"""Questions about layouts that all tensors here have the answer to: they are dense."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._core.dtypes import float32
from .._core.memory_format import memory_format

_COO, _ROWS, _COLUMNS = "coordinate", "row compressed", "column compressed"
_ONLY = {
    "coalesce": _COO, "is_coalesced": _COO, "indices": _COO, "crow_indices": _ROWS,
    "col_indices": _ROWS, "ccol_indices": _COLUMNS, "row_indices": _COLUMNS, "values": "",
}  # fmt: skip


def _of_sparse(name: str, kind: str) -> Callable[..., Any]:
    """Return a method that sparse tensors alone have; PyTorch's words for a dense one."""
    layout = f"sparse {kind} tensor layout" if kind else "sparse tensor layout"

    def method(self: Any) -> Any:
        raise RuntimeError(f"{name} expected {layout} but got Strided")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Of sparse tensors; this one is dense.\n\nRaises:\n  RuntimeError: always."
    return method


def _of_products(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Of sparse tensors; this one is dense."
    return method


def _to_sparse(name: str, found: str = "") -> Callable[..., Any]:
    """Return a method that makes a sparse tensor, or refuses.

    Args:
      found: the function that makes it.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if found:  # few programs need what that imports
            return getattr(import_module("leafax._sparse.make"), found)(self, *args, **kwargs)
        raise NotImplementedError(
            f"{name}(): leafax has sparse tensors of the layouts torch.sparse_coo, "
            "torch.sparse_csr and torch.sparse_csc"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        "Return a sparse tensor of it." if found else "Refuse: there is no such layout."
    )
    return method


def sparse_dim(self: Any) -> int:
    """Return 0: no dim is sparse."""
    return 0


def dense_dim(self: Any) -> int:
    """Return the number of dims: all are dense."""
    return int(self.dim())


def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """Return this tensor, cast if `dtype` is another."""
    return self if dtype is None else self.to(dtype)


def dequantize(self: Any) -> Any:
    """Return this tensor in float32: none is quantized."""
    return self.to(float32)


def is_distributed(self: Any) -> bool:
    """Return False: it is a tensor of one process, whose array may be on several devices."""
    return False


def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dims from the outermost to the innermost in memory, by their strides.

    Args:
      ambiguity_check: whether to raise where several orders would do; or a list of memory
        formats, exactly one of which the tensor must have.

    Raises:
      RuntimeError: if the order is ambiguous and that was asked.

    >>> import leafax
    >>> leafax.zeros(2, 3, 5).transpose(1, 2).dim_order()
    (0, 2, 1)
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = tuple(self.shape), self.stride()
    if ambiguity_check is not False:
        pairs = zip(strides, strides[1:], strict=False)
        several = 1 in shape or any(a == b for a, b in pairs)
        if several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the "
                "given memory formats."
            )
    if len(shape) < 2 or self.is_contiguous():
        return tuple(range(len(shape)))
    return _by_stride(shape, strides)


def _after(shape: tuple[int, ...], strides: tuple[int, ...], a: int, b: int) -> int:
    """Tell whether dim `b` belongs further inside than `a` (1), further outside (-1), or either."""
    if strides[a] == 0 or strides[b] == 0:
        return 0
    if strides[a] == strides[b]:
        return 0 if shape[b] >= shape[a] else 1
    return -1 if strides[b] > strides[a] else 1


def _by_stride(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return an insertion sort from the innermost dim, which leaves alone what is ambiguous."""
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for j in reversed(range(i)):
            found = _after(shape, strides, order[j], order[at])
            if found > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif found < 0:
                break
    return tuple(reversed(order))


METHODS: dict[str, Callable[..., Any]] = {
    **{name: _of_sparse(name, kind) for name, kind in _ONLY.items()},
    **{
        name: _to_sparse(name)
        for name in (
            "to_sparse_bsr", "to_sparse_bsc", "sparse_resize_",
            "sparse_resize_and_clear_", "resize_as_sparse_",
        )
    },
    "to_sparse": _to_sparse("to_sparse", "to_sparse"),
    "to_sparse_coo": _to_sparse("to_sparse_coo", "to_sparse"),
    "to_sparse_csr": _to_sparse("to_sparse_csr", "to_sparse_csr"),
    "to_sparse_csc": _to_sparse("to_sparse_csc", "to_sparse_csc"),
    "sparse_mask": _to_sparse("sparse_mask", "sparse_mask"),
    "smm": _of_products("smm"), "sspaddmm": _of_products("sspaddmm"),
    "sparse_dim": sparse_dim, "dense_dim": dense_dim, "to_dense": to_dense,
    "dequantize": dequantize, "is_distributed": is_distributed, "dim_order": dim_order,
}  # fmt: skip
FUNCTIONS = {"dequantize": dequantize, "is_distributed": is_distributed}
