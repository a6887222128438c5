"""Functions of matrices that PyTorch keeps under older names."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..calls.functions import function
from ..writes.write_out import check_out, write_out
from .reductions_with_forms import norm

_orgqr = function(TABLE["linalg.householder_product"])
_multi_dot = function(TABLE["linalg.multi_dot"])


def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """Return the first columns of a product of Householder reflections, as `geqrf` gives them.

    Args:
      input: `(..., m, n)`, the reflections' vectors below the diagonal.
      input2: `(..., k)`, their scales.
    """
    return _orgqr(input, input2, out=out)


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """Return the product of matrices, in the cheapest order; deprecated for `linalg.multi_dot`."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than "
        "multiple parameters."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, x in enumerate(matrices):
        if not isinstance(x, Handle):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
        if x.dim() != 2:  # type: ignore[attr-defined]
            raise RuntimeError(f"Tensor dimension is {x.dim()}, expected 2 instead.")  # type: ignore[attr-defined]
    made = matrices[0].clone() if len(matrices) == 1 else _multi_dot(matrices)
    return made if out is None else out.copy_(made)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803
    """Compute the powers of the elements of a vector, a row for each.

    Args:
      x: `(n,)`.
      N: how many powers, `n` if None.
      increasing: from the 0th power on; else down to it.
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    n = x.shape[0] if N is None else N
    if x._v.dtype.kind in "biu":
        x = x.long()
    if n < 2:
        powers = x.new_ones((x.shape[0], n))
    else:  # in these steps, as its graph shows
        powers = x.new_empty((x.shape[0], n))
        powers.select(1, 0).fill_(1)
        powers.narrow(1, 1, n - 1).copy_(x.unsqueeze(1))
        powers.narrow(1, 1, n - 1).copy_(powers.narrow(1, 1, n - 1).cumprod(1))
    return powers if increasing else powers.flip(1)


def frobenius_norm(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the 2-norm along one or two dims; deprecated for `linalg.vector_norm`."""
    warn_once(
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be "
        "removed in a future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` "
        "instead"
    )
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return norm(input, 2.0, dims, keepdim, out=out)


def nuclear_norm(input: Any, dim: Any = None, keepdim: Any = False, *, out: Any = None) -> Any:
    """Return the sum of the singular values; deprecated for `linalg.matrix_norm`."""
    warn_once(
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be "
        "removed in a future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, "
        "keepdim)` instead"
    )
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    dims = (-2, -1) if dim is None else tuple(dim)
    op = TABLE["linalg.matrix_norm"]
    if out is not None:
        check_out(op, out, (input,))
    made = apply(op, input, "nuc", dims, keepdim)
    return made if out is None else write_out(op, made, out)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Return the norms of the slices along `dim`, in a shape that broadcasts against `v`."""
    if dim == -1:
        return norm(v, float(pow))
    last = v.dim() - 1
    if dim == 0:
        rows = v.contiguous().view((v.shape[0], -1))
        return norm(rows, float(pow), 1).view((v.shape[0],) + (1,) * last)
    if dim == last:
        columns = v.contiguous().view((-1, v.shape[last]))
        return norm(columns, float(pow), 0).view((1,) * last + (v.shape[last],))
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
