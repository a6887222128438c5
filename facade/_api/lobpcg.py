"""`lobpcg`: some eigenpairs of a Hermitian matrix, from a decomposition of all of it.

PyTorch iterates from a guess and stops at a tolerance, which is what sparse matrices need. There
are none here, and XLA has no loop that is quicker than its eigendecomposition of a dense matrix;
so the pairs are exact, and what steers the iteration changes nothing.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from .._core.dtypes import complex64, complex128, float32, float64
from .._ops.calls.functions import function
from ..autograd._function import Function

_eigh = function(TABLE["linalg.eigh"])
_cholesky = function(TABLE["linalg.cholesky"])
_solve = function(TABLE["linalg.solve"])
_triangular = function(TABLE["linalg.solve_triangular"])


def lobpcg(
    A: Any,  # noqa: N803
    k: int | None = None,
    B: Any = None,  # noqa: N803
    X: Any = None,  # noqa: N803
    n: int | None = None,
    iK: Any = None,  # noqa: N803
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> Any:
    """Compute the `k` largest (or smallest) eigenvalues and -vectors of a Hermitian matrix.

    Args:
      A: `(*, m, m)`, Hermitian.
      k: how many; by default as many as `X` has columns, or one.
      B: `(*, m, m)`, positive definite; pairs are of `A x = e B x` then.
      X, n: the guess `(*, m, n)` to begin with, or its width; only their shapes are looked at.
      largest: the largest eigenvalues, in falling order (the default), or the smallest ones.
      iK, niter, tol, method, ortho_iparams, ortho_fparams, ortho_bparams: ignored.

    Returns:
      `(E, X)` of shapes `(*, k)` and `(*, m, k)`. Gradients of `A` are there, without `B`.

    Raises:
      ValueError: for a matrix of fewer rows than three times what is asked for.
      NotImplementedError: for a `tracker`: there are no steps to be called at.

    >>> import leafax
    >>> E, X = leafax.lobpcg(leafax.diag(leafax.arange(1.0, 7.0)), k=2)
    >>> E
    tensor([6., 5.])
    """
    if A._tracked or (B is not None and B._tracked):
        B = (B + B.mT) / 2 if B is not None else None  # noqa: N806
        return LOBPCGAutogradFunction.apply(
            (A + A.mT) / 2, k, B, X, n, iK, niter, tol, largest, method, tracker,
            ortho_iparams, ortho_fparams, ortho_bparams,
        )  # fmt: skip
    return _pairs(A, k, B, X, n, largest, tracker)


def _pairs(A: Any, k: Any, B: Any, X: Any, n: Any, largest: Any, tracker: Any) -> Any:  # noqa: N803
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    if A.dtype not in (float32, float64, complex64, complex128):
        raise TypeError(f"lobpcg takes matrices of float32, float64 and complex, not {A.dtype}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    if X is not None and X.shape != (*A.shape[:-2], m, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(*A.shape[:-2], m, n)}")
    if tracker is not None:
        raise NotImplementedError(
            "lobpcg with a `tracker` is not supported: leafax decomposes the whole matrix, so "
            "there are no steps at which to call it. Leave it out."
        )
    if B is None:
        values, vectors = _eigh(A)
    else:
        lower = _cholesky(B)
        half = _triangular(lower, A, upper=False)
        values, vectors = _eigh(_triangular(lower, half.mH, upper=False))
        vectors = _triangular(lower.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    k = min(k, n)
    return values[..., :k].to(A.dtype), vectors[..., :k]


class LOBPCGAutogradFunction(Function):
    """`lobpcg` with PyTorch's gradient: of a symmetric matrix, and of no other eigenvectors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        A, k, B, X, n, _, _, _, largest, _, tracker = args[:11]  # noqa: N806
        values, vectors = _pairs(A, k, B, X, n, largest, tracker)
        ctx.save_for_backward(A, B, values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, by_values: Any, by_vectors: Any) -> Any:
        A, B, values, vectors = ctx.saved_tensors  # noqa: N806
        if A.is_complex() or (B is not None and B.is_complex()):
            raise ValueError(
                "lobpcg.backward does not support complex input yet. Note that lobpcg.forward does "
                "though."
            )
        if B is not None:
            raise ValueError("lobpcg.backward does not support backward with B != I yet.")
        return _gradient(by_values, by_vectors, A, values, vectors), *(None,) * 13


def _gradient(by_values: Any, by_vectors: Any, A: Any, values: Any, vectors: Any) -> Any:  # noqa: N803
    """Return the gradient of `A`.

    Pair `j` moves its vector by `(d_j - A)^+` times what moves `A u_j`. The inverse is taken of
    `d_j - A + s u_j u_j^T`, which agrees with it off `u_j`, for a number `s` of the size of `A`:
    so eigenvalues that were not asked for may be repeated.
    """
    u = vectors.mT.unsqueeze(-1)  # (*, k, m, 1): a batch of pairs
    g = by_vectors.mT.unsqueeze(-1)
    eye = A.new_ones(A.shape[-1]).diag()
    size = values.detach().abs().amax(-1)[..., None, None, None].clamp(min=1e-30)
    shifted = values[..., None, None] * eye - A.unsqueeze(-3) + size * (u @ u.mT)
    moved = _solve(shifted, g - u @ (u.mT @ g)) + by_values[..., None, None] * u
    return (moved @ u.mT).sum(-3)
