"""Functions of matrices that PyTorch makes of other ops: norms, powers, chains, inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafax.functional.ops.linalg.lu import LU, Unpacked
from leafax.functional.ops.linalg.spectra import SVDOld
from leafax.functional.program.op import TABLE, Fault, Op

from ..._core.dtypes import of
from ..._core.memory_format import contiguous_format
from ..._core.trie import local
from ..._dispatch.record import apply
from ..._storage.write import written
from ..creation.factories import eye
from .registry import composes, under_grad
from .tensordot import tensordot

_SVD, _INV, _INV_EX = (TABLE[f"linalg.{name}"] for name in ("svdvals", "inv", "inv_ex"))
_NORM, _MATRIX_NORM = TABLE["linalg.vector_norm"], TABLE["linalg.matrix_norm"]
_MM = TABLE["mm"]


def _faults(A: Any) -> list[Fault]:  # noqa: N803
    found = _INV.check(A) if _INV.check is not None else []
    return [Fault(f.bad, f.error, f.message.replace("linalg.", ""), f.value) for f in found or ()]


# As `tensorinv` calls it: singular matrices are refused in other words.
_INV_OF_FLAT = Op(
    _INV.fn, name="inv", namespace="linalg", backward=_INV.backward, saves=_INV.saves,
    residuals=_INV.residuals, check=_faults,
)  # fmt: skip


@composes("lu_solve")
def _lu_solve(B: Any, LU: Any, pivots: Any) -> Any:  # noqa: N803
    return apply(TABLE["linalg.lu_solve"], LU, pivots, B)


@composes("linalg.matrix_norm")
def _matrix_norm(A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:  # noqa: N803
    if ord == "fro" or not A.numel():
        return None
    x = A if dtype is None else A.to(of(dtype))
    rows, columns = (d % x.dim() for d in dim)
    if ord in ("nuc", 2, -2):
        return _by_values(x, ord, rows, columns, keepdim)
    summed, picked = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = apply(_NORM, x, 1.0, (summed,), keepdim)
    if not keepdim and summed < picked:
        picked -= 1
    return sums.amax(picked, keepdim) if ord > 0 else sums.amin(picked, keepdim)


def _by_values(x: Any, ord: Any, rows: int, columns: int, keepdim: bool) -> Any:
    """Return a norm that is a function of the singular values."""
    order = (*[d for d in range(x.dim()) if d not in (rows, columns)], rows, columns)
    values = apply(_SVD, x.permute(order))
    pick = {"nuc": "sum", 2: "amax", -2: "amin"}[ord]
    out = getattr(values, pick)(-1, keepdim)
    return out.unsqueeze(-1).permute([order.index(d) for d in range(x.dim())]) if keepdim else out


@composes("linalg.norm")
def _norm(A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:  # noqa: N803
    dims = (dim,) if isinstance(dim, int) else dim
    rank = A.dim() if dims is None else len(dims)
    if ord in (None, "fro") or not (rank == 2 or isinstance(ord, str)):
        return None
    if dims is None and A.dim() != 2:
        return None
    return apply(_MATRIX_NORM, A, ord, dims or (-2, -1), keepdim, dtype)


class _Factors(NamedTuple):
    L: Any
    U: Any
    P: Any


def _factors_first(op: Op) -> Op:
    """`op` with its permutation last: a constant, it is none of the results of PyTorch's node."""

    def fn(*args: Any, **kwargs: Any) -> _Factors:
        P, L, U = op.fn(*args, **kwargs)  # noqa: N806
        return _Factors(L, U, P)

    fn.__signature__ = op.signature  # type: ignore[attr-defined]
    return Op(
        fn, name=op.name, namespace=op.namespace, backward=op.backward, saves=op.saves,
        residuals=op.residuals, constant_outputs=(2,), check=op.check,
    )  # fmt: skip


_LU, _LU_UNPACK = _factors_first(TABLE["linalg.lu"]), _factors_first(TABLE["lu_unpack"])


@composes("linalg.lu")
def _lu(A: Any, *, pivot: bool) -> Any:  # noqa: N803
    L, U, P = apply(_LU, A, pivot=pivot)  # noqa: N806
    return LU(P, L, U)


@composes("lu_unpack")
def _lu_unpack(LU_data: Any, LU_pivots: Any, *flags: bool) -> Any:  # noqa: N803
    L, U, P = apply(_LU_UNPACK, LU_data, LU_pivots, *flags)  # noqa: N806
    return Unpacked(P, L, U)


@composes("linalg.svdvals")
def _singular_values(A: Any, *, driver: str | None) -> Any:  # noqa: N803
    if not under_grad(local.mode, A):
        return None
    return apply(TABLE["linalg.svd"], A, False, driver=driver)[1]


@composes("svd")
def _svd(input: Any, some: bool, compute_uv: bool) -> Any:
    if compute_uv:
        u, s, vh = apply(TABLE["linalg.svd"], input, not some)
    else:
        s = apply(_SVD, input)
        u, vh = (written(input.new_zeros((*s.shape[:-1], n, n))) for n in input.shape[-2:])
    return SVDOld(u, s, vh.mH)


@composes("linalg.eigvals")
def _eigenvalues(A: Any) -> Any:  # noqa: N803
    return apply(TABLE["linalg.eig"], A)[0] if under_grad(local.mode, A) else None


@composes("linalg.eigvalsh")
def _eigenvalues_of_symmetric(A: Any, UPLO: str) -> Any:  # noqa: N803
    return apply(TABLE["linalg.eigh"], A, UPLO)[0] if under_grad(local.mode, A) else None


@composes("logdet")
def _logdet(input: Any) -> Any:
    sign, log = apply(TABLE["linalg.slogdet"], input)[:2]
    if input.is_complex():
        return sign.log() + log
    return apply(TABLE["where"], sign == -1.0, math.nan, log)


@composes("linalg.vander")
def _vander(x: Any, *, N: int | None) -> Any:  # noqa: N803
    x = x if x.is_floating_point() or x.is_complex() else x.long()
    x = x if x.dim() else x.unsqueeze(-1)
    count = (x.shape[-1] if N is None else N) - 1
    powers = x.unsqueeze(-1).expand(*x.shape, count).cumprod(-1)
    return apply(TABLE["cat"], (x.new_ones((*x.shape, 1)), powers), -1)


@composes("linalg.cond")
def _cond(A: Any, p: Any) -> Any:  # noqa: N803
    if not A.numel():
        return None
    if p in (None, 2, -2):
        values = apply(_SVD, A)
        most, least = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        return (least / most if p == -2 else most / least).squeeze(-1)
    if p == "nuc":
        values = apply(_SVD, A)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = apply(_INV_EX, A)
    inverse = inverse.masked_fill((info > 0).unsqueeze(-1).unsqueeze(-1), math.inf)
    norms = [apply(_MATRIX_NORM, x, p, (-2, -1), False, None) for x in (A, inverse)]
    return (norms[0] * norms[1]).nan_to_num(math.inf, math.inf, -math.inf)


@composes("matrix_power", "linalg.matrix_power")
def _matrix_power(A: Any, n: int) -> Any:  # noqa: N803
    if n == 0:  # PyTorch keeps the matrix in the graph
        return A.clone(memory_format=contiguous_format).copy_(eye(A.shape[-1], dtype=A.dtype))
    if n == 1:
        return A.clone(memory_format=contiguous_format)
    power = apply(_INV, A) if n < 0 else A
    n = abs(n)
    if n == 3:
        return power @ power @ power
    result = None
    while True:
        if n % 2:
            result = power if result is None else result @ power
        n //= 2
        if not n:
            return result
        power = power @ power


@composes("linalg.multi_dot")
def _multi_dot(tensors: Sequence[Any]) -> Any:
    first, *rest = tensors
    *middle, last = rest
    shape = (*first.shape[:-1], *last.shape[1:])
    matrices = [
        first.unsqueeze(0) if first.dim() == 1 else first, *middle,
        last.unsqueeze(-1) if last.dim() == 1 else last,
    ]  # fmt: skip
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    return _chained(matrices, _splits(sizes), 0, len(matrices) - 1).view(shape)


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Find where the cheapest order of products splits each run of matrices."""
    n = len(sizes) - 1
    if n == 3:  # of two orders at one price the other one
        a, b, c, d = sizes
        return {(0, 2): 0 if a * c * (b + d) > b * d * (a + c) else 1, (0, 1): 0, (1, 2): 1}
    costs = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            at = [
                costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            costs[i, j] = min(at)
            splits[i, j] = i + at.index(costs[i, j])
    return splits


def _chained(matrices: list[Any], splits: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = splits[i, j]
    left, right = _chained(matrices, splits, i, k), _chained(matrices, splits, k + 1, j)
    return apply(_MM, left, right)


@composes("linalg.tensorinv")
def _tensorinv(A: Any, ind: int) -> Any:  # noqa: N803
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    flat = A.reshape(math.prod(rows), math.prod(columns))
    return apply(_INV_OF_FLAT, flat).reshape(columns + rows)


@composes("linalg.tensorsolve")
def _tensorsolve(A: Any, B: Any, dims: Any) -> Any:  # noqa: N803
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))  # noqa: N806
    shape = tuple(A.shape[B.dim() :])
    n = math.prod(shape)
    return apply(TABLE["linalg.solve"], A.reshape(n, n), B.flatten()).reshape(shape)


@composes("cross")
def _cross(input: Any, other: Any, dim: int | None) -> Any:
    dim = tuple(input.shape).index(3) if dim is None else dim
    return apply(TABLE["linalg.cross"], input, other, dim)


@composes("linalg.vecdot")
def _vecdot(x: Any, y: Any, dim: int) -> Any:
    if x.dim() == y.dim() == 1:
        return apply(TABLE["vdot"], x, y)
    return (x.conj() * y).sum(dim)


@composes("inner")
def _inner(input: Any, other: Any) -> Any:
    if not input.dim() or not other.dim():
        return input * other
    return tensordot(input, other, ([-1], [-1]))


@composes("linalg.diagonal")
def _diagonal(A: Any, offset: int, dim1: int, dim2: int) -> Any:  # noqa: N803
    return A.diagonal(offset, dim1, dim2)
