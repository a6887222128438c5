"""Refusals of linear algebra, at the line that made them and in PyTorch's words, as sessions.

Each session is one of the checks that PyTorch's functions share, asked of the functions that make
it. `p` are pivots, `tau` the scales of reflections.
"""

from __future__ import annotations

from textwrap import dedent

import pytest
from helpers.sessions import compare

START = """
    A = torch.tensor([[4.0, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], dtype=torch.float64)
    B, v = A[:, :2] + 1, A[0]; h, b, n, c = A.half(), A.bfloat16(), A.long(), A + 0j
    L, F = torch.linalg, torch.nn.functional; p = torch.tensor([2, 3, 3], dtype=torch.int32)
    tau = torch.tensor([0.5, 0.25], dtype=torch.float64); E = A[:0]
"""

SESSIONS = {
    "dtypes that no kernel has": """
        L.det(h); L.slogdet(h); torch.logdet(b); L.inv(h); torch.inverse(b); L.pinv(h)
        L.cholesky(h); L.cholesky_ex(b); torch.cholesky(n); torch.svd(v); L.matrix_power(n, -1)
        L.eig(b); L.eig(n); L.eigvals(b)
        L.eigh(h); L.eigvalsh(n); L.qr(h); torch.qr(b); L.svd(h); L.svdvals(b); torch.svd(h)
        L.lu(h); L.lu(n); L.lu_factor(b); L.lu_factor_ex(n); L.lu_solve(h, p, h); L.solve(h, h)
        L.solve_triangular(h, h, upper=True); L.solve_triangular(n, A, upper=True); torch.geqrf(n)
        torch.triangular_solve(h, h); torch.cholesky_solve(n, n); torch.cholesky_inverse(b)
        L.lstsq(h, h); L.lstsq(h, h, rcond=0.1); L.matrix_rank(h); L.matrix_rank(n, tol=0.1)
        L.matrix_rank(h, rtol=0.1); L.cond(h); L.cond(h, 1); L.cond(n, "nuc"); L.ldl_factor(h)
        L.ldl_solve(h, p, h); L.householder_product(h, h[0]); torch.ormqr(n, n[0], n)
        L.tensorinv(h, 1); L.tensorsolve(h, h[0]); L.vander(h); L.vander(n > 1); torch.cdist(h, h)
        torch.cdist(n, n); L.vecdot(n, n)
    """,
    "empty matrices of such dtypes": """
        L.det(h[:0, :0]), L.cholesky(h[:0, :0]).shape, L.inv(h[:0, :0]); L.eigh(n[:0, :0])
        L.lu_factor(n[:0, :0]).pivots; L.qr(h[:0]); L.eig(b[:0, :0]); L.cond(E), L.cond(E, 1)
        L.cond(E, "fro"); L.cond(E, 3); L.cond(c[:0]); torch.cholesky(E).shape
    """,
    "two dtypes": """
        L.solve(A, h); torch.cholesky_solve(n, A); torch.triangular_solve(c, A)
        L.ldl_solve(A, p, B.float()); L.ldl_solve(A, p.float(), B); L.lu_solve(A, p, c)
        torch.lu_solve(B.float(), A, p); L.lu_solve(A, p.long(), B); torch.lu_unpack(A, p.long())
        torch.lu_unpack(A, p.long(), unpack_pivots=False)[1].shape; L.lstsq(A, B.float())
        torch.ormqr(B, tau.float(), B); torch.ormqr(B, tau, B.half()); L.vecdot(A, h)
        L.multi_dot([A, A, B.float()]); torch.chain_matmul(A, h); torch.addmv(v, A, v.float())
        torch.addmv(v.half(), A, v.float()); torch.cdist(A, A.float()); torch.cdist(h, A)
        torch.bmm(h[None] > 1, A[None]); L.cross(v > 1, v); F.bilinear(A, A.float(), A[None])
        F.bilinear(A, A, A[None], v[:1].half())
    """,
    "the dtype of the matrix": """
        mixed = [L.solve_triangular(a, x, upper=True) for a in (A, A.float()) for x in (A, n, h)]
        mixed, [L.solve_triangular(c, x, upper=True).real for x in (A, n, h)]
    """,
    "sizes of two matrices": """
        L.solve(A, v[0]); L.solve(A, B[:2]); L.solve(A, v, left=False); L.solve(A, B, left=False)
        L.solve(A[:1, :1], v[:1], left=False); L.solve(A.expand(2, 3, 3), B.expand(5, 3, 2))
        L.solve_triangular(A, v, upper=True); L.solve_triangular(A, B, upper=True, left=False)
        L.solve_triangular(B, B, upper=True); L.solve_triangular(A, E, upper=True)
        torch.triangular_solve(B[:1], A); torch.triangular_solve(v, A); torch.triangular_solve(B, v)
        torch.cholesky_solve(v, A); torch.cholesky_solve(B, B); torch.cholesky_solve(E, A)
        torch.cholesky_solve(B, v[0]); torch.cholesky_solve(B.expand(5, 3, 2), A.expand(2, 3, 3))
        L.lu_solve(A, p, v); L.lu_solve(A, p, B[:2]); L.lu_solve(A, p, B, left=False)
        L.lu_solve(B, p, B); L.lu_solve(A, p[:2], B); L.lu_solve(A.expand(2, 3, 3), p, B)
        L.lu_solve(A, p[0], B); L.ldl_solve(A, p, v); L.ldl_solve(A, p, v[0]); L.cond(B, 1)
        L.ldl_solve(A, p, B[:2]); L.ldl_solve(A, p[:2], B); torch.cholesky_inverse(B)
        torch.logdet(B); L.lu(v); L.lu_factor(v); torch.lu_unpack(v, p); torch.geqrf(v)
        L.matrix_rank(v); L.matrix_rank(B, hermitian=True); L.pinv(B, hermitian=True); L.cond(v)
        L.cond(v, "fro"); L.vecdot(v, v[:2]); L.cross(v, v[:2])
        L.tensorsolve(A, v[:2]); L.tensorsolve(A[:2], v); L.tensorsolve(v[0], v)
        L.tensorsolve(A, v, dims=(5,)); L.tensorsolve(A, v, dims=(0, 0)); L.tensorinv(A, -1)
        L.tensorinv(A, 5); L.tensorinv(B, 1); F.bilinear(A, A, A); F.bilinear(v[0], v[0], A[None])
        F.bilinear(A, A, A[None], v); F.bilinear(A, A, v[0]); torch.cdist(A, A, compute_mode="x")
        v[0].size(0); v[0].stride(1); torch.baddbmm(A[None], v, A[None]); torch.addbmm(B, A, B)
        torch.baddbmm(B[None], A[None], v[0]); torch.addbmm(B, A[None], A[None, None])
    """,
    "least squares": """
        L.lstsq(v, v); L.lstsq(A, v[0]); L.lstsq(A, B[None]); L.lstsq(A, B[:2]); L.lstsq(A, v[:2])
        L.lstsq(A.expand(2, 3, 3), B[None]).solution.shape; L.lstsq(A.expand(2, 3, 3), B)
        L.lstsq(A[None], B)[0].shape; L.lstsq(B, v).residuals; L.lstsq(A, B, driver="x")
        L.lstsq(A[None, :, :2], B, driver="gels").residuals.shape; L.lstsq(A, B[None].float())
    """,
    "reflections": """
        torch.ormqr(v, tau, B); torch.ormqr(B, tau, v); torch.ormqr(B, v, B)
        torch.ormqr(B, v[0], B)
        torch.ormqr(B, tau, B[:1]); torch.ormqr(B, tau, B, left=False); torch.ormqr(B[None], tau, B)
        torch.ormqr(B, tau, B[None]); torch.ormqr(B.expand(2, 3, 2), tau.expand(3, 2), B[None])
        torch.ormqr(B.expand(2, 3, 2), tau.expand(2, 2), B.expand(3, 3, 2))
        L.householder_product(B, v[0]); L.householder_product(B, v); L.householder_product(B.t(), v)
        L.householder_product(B[None], tau); L.householder_product(B, tau.float())
    """,
    "words and numbers": """
        L.eigh(A, UPLO="X"); L.eigvalsh(A, UPLO="lower"); L.qr(A, mode="x"); L.qr(v, mode="x")
        L.matrix_norm(A, ord="x"); L.norm(A, ord="x"); L.norm(v, "fro"); L.cond(A, "x")
        L.svd(A, driver="gesvd"); L.svdvals(v, driver="x"); L.svdvals(A, driver="gesvd")
        L.cond(A, 3); L.cond(B, "x"); L.lu(A, pivot=False); L.lu_factor_ex(A, pivot=False)
        L.matrix_rank(A, tol=torch.tensor(1j)); L.matrix_rank(A, rtol=torch.tensor(1j))
    """,
    "what is no tensor": """
        L.solve_triangular(None, A, upper=True); L.solve_triangular(A, [1.0], upper=True)
        torch.cdist(A, 1.0); torch.cdist([1.0], A); torch.block_diag(A, None)
        torch.block_diag([1.0], A); torch.block_diag(3, A); torch.cov([1.0]); torch.corrcoef(None)
        F.bilinear(A, None, A[None]); F.bilinear(A, A, 1.0); torch.block_diag(A, v).shape
    """,
    "what only the data can tell": """
        Z, I = A[0].diag() * 0, torch.stack([A, A * 0]); L.inv_ex(Z)[1], L.inv_ex(A)[1]
        L.inv_ex(Z, check_errors=True).info.item(); L.inv_ex(I, check_errors=True).info.tolist()
        L.cholesky_ex(-A, check_errors=True).info.item()
        L.cholesky_ex(-A, upper=True, check_errors=True).info.item()
        L.lu_factor(Z)[0].tolist(); L.lu_factor_ex(I, check_errors=True)[0].tolist()
        L.solve_ex(Z, B, check_errors=True)[0].tolist(); L.inv_ex(A, check_errors=True).info
    """,
    "pivots of another shape": """
        torch.lu_unpack(A.expand(3, 3, 3), p)[0]; torch.lu_unpack(A[None], p)[0].shape
    """,
    "dims of what has none": """
        s, i = A[0, 0], p[0].long(); L.cross(s, s); L.cross(s, s, dim=0); torch.cross(s, s, dim=1)
        torch.cross(s, s, dim=-1); L.cross(s, v); L.cross(A, v); L.cross(B, B, dim=4)
        torch.take_along_dim(s, i, -1); torch.take_along_dim(s, i, 0)
        torch.take_along_dim(s, i, 1); torch.take_along_dim(s, i * 0)
    """,
    "low rank": """
        torch.svd_lowrank(v); torch.svd_lowrank(v[0]); torch.svd_lowrank(b, 2)
        torch.svd_lowrank(n, 2); torch.svd_lowrank(h, 2); torch.pca_lowrank(A, "a")
        [x.shape for x in torch.svd_lowrank(A[None], 2)]
    """,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_refusals(name):
    compare(dedent(START) + dedent(SESSIONS[name]))
