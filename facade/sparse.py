"""PyTorch's `torch.sparse`: tensors of which only what is not zero is held.

>>> import leafax as torch
>>> edges = torch.tensor([[0, 1, 1], [2, 0, 2]])
>>> graph = torch.sparse_coo_tensor(edges, torch.tensor([3.0, 4.0, 5.0]), (2, 3))
>>> torch.sparse.mm(graph, torch.ones(3, 1))
tensor([[3.],
        [9.]])
>>> torch.sparse.sum(graph)
tensor(12.)
"""

from __future__ import annotations

from typing import Any

from ._core.dtypes import Size as _Size
from ._core.memory_format import sparse_coo as _sparse_coo
from ._core.memory_format import sparse_csc as _sparse_csc
from ._core.memory_format import sparse_csr as _sparse_csr
from ._sparse import make as _make
from ._sparse import ops as _ops
from ._sparse.products import addmm as addmm
from ._sparse.products import matmul as _matmul
from ._sparse.products import reduced as _reduced
from ._sparse.tensor import CscTensor as _CscTensor
from ._sparse.tensor import CsrTensor as _CsrTensor
from ._sparse.tensor import SparseTensor as _SparseTensor

__all__ = [
    "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "sum",
]  # fmt: skip


def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """Make a sparse tensor of coordinates, `(sparse dims, elements)`, and values.

    With a size alone it is one of zeros.
    """
    if values is None:
        return _make.empty(_Size(indices if size is None else size), dtype, device)
    return _make.coo(indices, values, size, dtype, device, requires_grad, is_coalesced)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """Make a sparse matrix of rows.

    Args:
      crow_indices: how many elements stand before each row, and in all.
      col_indices: the elements' columns.
      values: the elements.
    """
    return _make.compressed(
        _CsrTensor, crow_indices, col_indices, values, size, dtype, device, requires_grad
    )


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """Make a sparse matrix of columns.

    Args:
      ccol_indices: how many elements stand before each column, and in all.
      row_indices: the elements' rows.
      values: the elements.
    """
    return _make.compressed(
        _CscTensor, ccol_indices, row_indices, values, size, dtype, device, requires_grad
    )


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
    layout: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Make a sparse matrix of a compressed layout, `sparse_csr` or `sparse_csc`."""
    make = {_sparse_csr: sparse_csr_tensor, _sparse_csc: sparse_csc_tensor}.get(layout)
    if make is None:
        raise NotImplementedError(
            "leafax has sparse tensors of the layouts torch.sparse_coo, torch.sparse_csr and "
            f"torch.sparse_csc, not {layout}"
        )
    return make(compressed_indices, plain_indices, values, size, **options)


def _other_layout(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}(): leafax has sparse tensors of the layouts torch.sparse_coo, "
            "torch.sparse_csr and torch.sparse_csc"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: leafax has no such layout."
    return refuse


sparse_bsr_tensor = _other_layout("sparse_bsr_tensor")
sparse_bsc_tensor = _other_layout("sparse_bsc_tensor")


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """Return the product of two matrices, of which one is sparse.

    Args:
      reduce: "sum", "mean", "amax" or "amin" of the terms of each row.
    """
    if reduce not in (None, "sum"):
        return _reduced(mat1, mat2, reduce)
    if not isinstance(mat1, _SparseTensor) and not isinstance(mat2, _SparseTensor):
        return mat1.mm(mat2)
    return _matmul(mat1, mat2)


spmm = mm


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum over all elements, or over dims; sparse if sparse dims are left."""
    return _ops.sum_of(input, dim, dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the softmax along a dim of the elements that are held."""
    return _ops.softmax(input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the logarithm of the softmax along a dim of the elements that are held."""
    return _ops.softmax(input, dim, dtype=dtype, log=True)


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0
) -> Any:  # fmt: skip
    """Return `beta * input + alpha * mat1 @ mat2` at the places of a sparse matrix alone."""
    rows, columns = input._coo()._places.unbind(0)
    product = (mat1.index_select(0, rows) * mat2.transpose(0, 1).index_select(0, columns)).sum(1)
    return input._with(input._held * beta + product * alpha)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """Make a sparse matrix of diagonals; runs the program.

    Args:
      diagonals: `(diagonals, length)`; an element stands in the column of its place.
      offsets: how far each lies above the main one.
    """
    rows, columns, places = [], [], []
    for k, offset in enumerate(offsets.reshape(-1).tolist()):
        for j in range(diagonals.shape[-1]):
            if 0 <= j - offset < shape[0] and j < shape[1]:
                rows.append(j - offset)
                columns.append(j)
                places.append(k * diagonals.shape[-1] + j)
    made = _make.coo([rows, columns], diagonals.reshape(-1)[places], shape)
    return made if layout in (None, _sparse_coo) else _make.to_sparse(made, layout=layout)


class check_sparse_tensor_invariants:  # noqa: N801
    """Accept the switch of PyTorch's checks of indices; there are none beyond shapes here.

    Args:
      enable: what `is_enabled()` says within a block.
    """

    _on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state = False

    @staticmethod
    def is_enabled() -> bool:
        """Return what was chosen last."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Choose checks."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Choose no checks."""
        check_sparse_tensor_invariants._on = False

    def __enter__(self) -> None:
        self.saved_state = check_sparse_tensor_invariants._on
        check_sparse_tensor_invariants._on = self.state

    def __exit__(self, *exc: object) -> None:
        check_sparse_tensor_invariants._on = self.saved_state
