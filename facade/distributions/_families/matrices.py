"""Products and norms of batches of vectors with batches of matrices."""

from __future__ import annotations

from typing import Any

from ... import eye, flip, linalg, matmul, transpose


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    return matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:  # noqa: N803
    """The squared norm of `L^-1 x`, for lower triangular `L` whose batch divides that of `x`.

    The batch is folded so that one triangular solve with many right sides is made for each matrix.
    """
    n = bx.size(-1)
    batch = bx.shape[:-1]
    outer = len(batch) - (bL.dim() - 2)
    split = list(batch[:outer])  # each dimension of x's batch as (repeats, dimension of L's)
    for of_l, of_x in zip(bL.shape[:-2], batch[outer:], strict=True):
        split += [of_x // of_l, of_l]
    repeats = [*range(outer), *range(outer, len(split), 2)]
    shared = list(range(outer + 1, len(split), 2))
    folded = bx.reshape([*split, n]).permute([*repeats, *shared, len(split)])
    flat_l = bL.reshape(-1, n, n)
    flat_x = folded.reshape(-1, flat_l.size(0), n).permute(1, 2, 0)
    norms = linalg.solve_triangular(flat_l, flat_x, upper=False).pow(2).sum(-2).t()
    back = [0] * len(split)
    for at, dim in enumerate([*repeats, *shared]):
        back[dim] = at
    return norms.reshape(folded.shape[:-1]).permute(back).reshape(batch)


def _precision_to_scale_tril(P: Any) -> Any:  # noqa: N803
    """The lower Cholesky factor of the inverse of `P`, without inverting it."""
    flipped = linalg.cholesky(flip(P, (-2, -1)))
    inverse = transpose(flip(flipped, (-2, -1)), -2, -1)
    identity = eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(inverse, identity, upper=False)
