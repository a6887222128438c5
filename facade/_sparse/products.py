"""Products with sparse matrices: rows are gathered, multiplied and added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops.creation.factories import zeros
from .make import to_dense, to_sparse
from .shapes import transpose
from .tensor import CompressedTensor, SparseTensor


def matmul(a: Any, b: Any) -> Any:
    """Return the product of two matrices, or of a matrix and a vector, of which one is sparse."""
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        _check(a, b)
        made = to_sparse(to_dense(a) @ to_dense(b))
        return made.to_sparse_csr() if isinstance(a, CompressedTensor) else made
    if isinstance(b, SparseTensor):
        if a.dim() == 1:
            return matmul(transpose(b._coo(), 0, 1), a)
        return matmul(transpose(b._coo(), 0, 1), a.transpose(0, 1)).transpose(0, 1)
    _check(a, b)
    rows, terms = _terms(a, b)
    out = zeros(a.shape[0], *b.shape[1:], dtype=terms.dtype, device=terms.device)
    return out.index_add(0, rows, terms)


def _terms(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the products of the elements, and their rows."""
    coords = a._coo()
    rows, columns = coords._places.unbind(0)
    values = coords._held if b.dim() == 1 else coords._held.unsqueeze(1)
    return rows, values * b.index_select(0, columns)


def reduced(a: Any, b: Any, reduce: str) -> Any:
    """Return a product whose terms are not added up: their "mean", "amax" or "amin" by row."""
    _check(a, b)
    rows, terms = _terms(a, b)
    out = zeros(a.shape[0], *b.shape[1:], dtype=terms.dtype, device=terms.device)
    places = rows.reshape(-1, *[1] * (terms.dim() - 1)).expand_as(terms)
    return out.scatter_reduce(0, places, terms, reduce, include_self=False)


def _check(a: Any, b: Any) -> None:
    if a.dim() != 2 or b.dim() not in (1, 2):
        raise RuntimeError(
            f"sparse products are of matrices here, but got {a.dim()} and {b.dim()} dims"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}"
        )


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * input + alpha * mat1 @ mat2`."""
    product = matmul(mat1, mat2)
    if isinstance(input, SparseTensor):
        return to_dense(input) * beta + product * alpha
    return input * beta + product * alpha


def _bmm(a: Any, b: Any) -> Any:
    return to_dense(a).bmm(b) if isinstance(a, SparseTensor) else a.bmm(to_dense(b))


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    made = matmul(input, transpose(weight._coo(), 0, 1) if isinstance(weight, SparseTensor)
                  else weight.transpose(0, 1))  # fmt: skip
    return made if bias is None else made + bias


PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": matmul, "mm": matmul, "mv": matmul, "spmm": matmul, "dsmm": matmul, "hsmm": matmul,
    "smm": matmul, "addmm": addmm, "bmm": _bmm, "linear": _linear,
}  # fmt: skip
