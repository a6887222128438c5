"""Linear algebra on matrices that lack rank or a factor, as sessions."""

from __future__ import annotations

from textwrap import dedent

import pytest
from helpers.sessions import compare

START = """
    A = torch.tensor([[4.0, 1, 2], [1, -5, 3], [2, 3, 7]], dtype=torch.float64); W = A[:, :2]
    D = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64)); o = D[:, :1] * 0 + 1
    L = torch.linalg; S = torch.stack([A.mT @ A, A, -A, A * float("nan")]); Z = A * 0
"""

SESSIONS = {
    "the tolerance of least squares": """
        [L.lstsq(D, o, rcond=r)[:3:2] for r in (None, 0.1, -1.0, 0.0, 1.0)]
        [L.lstsq(D, o, rcond=r, driver="gelsy")[:3:2] for r in (None, 0.1, -1.0, 0.0, 1.0)]
        [L.lstsq(D, o, rcond=r, driver="gelsd")[:3:2] for r in (None, 0.1, -1.0, 0.0, 1.0)]
        [L.lstsq(D, o, rcond=r, driver="gelss")[:3:2] for r in (None, 0.1, -1.0, 0.0, 1.0)]
        [L.lstsq(D, o, rcond=r, driver="gels")[0] for r in (None, 0.1, 1.0)]
        L.lstsq(torch.stack([D, D * 3]), torch.stack([o, o]), 0.1).rank; L.lstsq(D + 0j, o + 0j, .1)
        a = D.clone().requires_grad_(); b = o.clone().requires_grad_(); x = L.lstsq(a, b, rcond=0.1)
        torch.autograd.grad(x.solution.sum(), (a, b))
    """,
    "residuals where rank is lacking": """
        U = torch.stack([W, W * 0 + 1]); V = torch.stack([A, A]); B = W * 0 + 1
        L.lstsq(W, A, driver="gelsd").residuals[2]; L.lstsq(B, A, driver="gelsd")[1:3]
        L.lstsq(U, V, driver="gelss")[1:3]; L.lstsq(U[:1], V[:1], driver="gelss").residuals[0, 2]
        L.lstsq(W, A, 0.99, driver="gelss")[1:3]; L.lstsq(input=B, b=A, driver="gelss")[1:3]
        L.lstsq(1, A, driver="gelsd"); L.lstsq(driver="gelsd"); L.lstsq(W.mT, W.mT, driver="gelss")
        a = B.clone().requires_grad_(); x = L.lstsq(a, A, driver="gelsd"); x.residuals.shape
        [t.grad_fn and t.grad_fn.name() for t in x]
        torch.autograd.grad(x[0][0].sum(), a)[0].sum(0)[1]
    """,
    "as far as a Cholesky factor goes": """
        L.cholesky_ex(A); L.cholesky_ex(A, upper=True); L.cholesky_ex(S).info; L.cholesky_ex(S[:3])
        L.cholesky_ex(S, upper=True).info; L.cholesky_ex(A + 0j).info; L.cholesky_ex(S[:0]).info
        L.cholesky_ex(torch.diag(A[0] - 1)).info; L.cholesky_ex(A.float()).L
        a = A.clone().requires_grad_(); torch.autograd.grad(L.cholesky_ex(a).L.sum(), a)
        L.cholesky_ex(S, check_errors=True).info.tolist(); torch.func.vmap(L.cholesky_ex)(S).info
    """,
    "the inverse of a factor with a zero": """
        torch.cholesky_inverse(Z).tolist(); torch.cholesky_inverse(torch.diag(A[0] - 1)).tolist()
        torch.cholesky_inverse(torch.diag(A[0] - 2), upper=True).tolist()
        torch.cholesky_inverse(torch.stack([A, Z])).tolist(); torch.cholesky_inverse(Z[:0, :0])
    """,
    "factors of matrices that are not square": """
        L.lu_factor(Z[:2]).pivots.tolist(); L.lu_factor(Z[:, :2]).pivots.tolist()
        L.lu_factor_ex(Z[:2], check_errors=True).info.item(); L.lu_factor_ex(Z[:2]).info
        L.lu_factor(torch.stack([A, Z])[:, :2]).LU.tolist(); L.lu_factor(W).pivots
        L.lu_factor_ex(W * W[:1].mT.sum() * 0, check_errors=True).info.item(); L.lu(Z[:2]).U
        L.lu_factor(Z[:0]).LU
    """,
    "gradients of qr that there are none of": """
        w = W.clone().requires_grad_(); R = L.qr(w, mode="r").R; R.sum().backward()
        R = L.qr(w, mode="complete").R; R.grad_fn is None; R.sum().backward()
        torch.qr(w, some=False).R.sum().backward()
        L.qr(w).R.abs().sum().backward(); L.qr(w.mT, mode="complete").R.abs().sum().backward()
        L.qr(w.mT, mode="r").R.sum().backward(); w.grad
        torch.func.jvp(lambda x: L.qr(x, mode="r").R, (W,), (W,))
        torch.func.jvp(lambda x: L.qr(x, "complete").R, (W,), (W,))
        torch.func.jvp(lambda x: L.qr(x).R.abs(), (W,), (W,))[1]
    """,
    "orders and dims of norms": """
        T, E = torch.ones(2, 3, 4), torch.ones(2, 0, 3); L.norm(T, dim=(0, 1, 2)); L.norm(T, dim=())
        L.norm(T, "fro", dim=(0, 1, 2)); L.norm(T[0, 0], dim=0); L.norm(T[0], 1j)
        L.vector_norm(A, 1j); L.matrix_norm(A, 1j); L.norm(A[0], 1j); torch.norm(A, 1j)
        torch.renorm(A, 1j, 0, 1.0); torch.renorm(A[0], 1j, 0, 1.0); torch.renorm(A, 2, 0, 1j)
        L.vector_norm(E, float("inf"), dim=(0, 1)); L.vector_norm(E, -1, dim=-2)
        L.vector_norm(E, -2.5); L.vector_norm(E, -2.5, dim=()); L.vector_norm(E, -1, dim=0).shape
        L.vector_norm(E, float("inf"), dim=2).shape; L.vector_norm(E, 2, dim=1)
    """,
    "pivots that no factorization gives": """
        P = lambda *p: torch.tensor(p, dtype=torch.int32); B = Z[:, :2] + 1; E = Z + torch.eye(3)
        for p in ((0, 1, 1), (4, 1, 1), (4, 0, 1), (3, 3, 3)):
            print(L.lu_solve(E, P(*p), B, adjoint=True).tolist())
        L.lu_solve(E, P(0, 0, 0), B[:, :0]).shape; torch.lu_solve(B, E, P(4, 0, 1)).tolist()
        L.lu_solve(torch.stack([E, E]), torch.stack([P(1, 2, 3), P(1, 2, 0)]), B).tolist()
        L.ldl_solve(E, P(1, 2, 3), B).tolist(); L.ldl_solve(E, P(1, 2, 0), B).tolist()
        L.ldl_solve(E, P(1, 2, 4), B).tolist(); L.ldl_solve(E, P(-4, -4, 3), B).tolist()
    """,
    "diagonals far away": """
        [f(A, k) for f in (torch.triu, torch.tril) for k in (2**63 - 1, -(2**63), 2**40, 3, -3, -2)]
        [f(W, k) for f in (torch.triu, torch.tril) for k in (2**62, -(2**62), 1, 2, -3, -2)]
        A.clone().triu_(2**63 - 1); W.mT.tril(-(2**63)); torch.ones(2, 0).triu(2**63 - 1)
        a = A.clone().requires_grad_(); torch.autograd.grad(a.triu(2**63 - 1).sum(), a)
    """,
    "tensors for numbers": """
        t = torch.tensor; A.renorm(2, 0, A.norm(2, 1).mean()); torch.renorm(A, t(2), t(0), t(1.0))
        a = A.clone(); a.renorm_(1, 1, A.abs().max()); torch.renorm(A, 2, 0, t(-1.0))
        torch.renorm(A, 2, 0, t([1.0])); L.vector_norm(A, t(2.0)); L.norm(A, t(3))
        torch.dist(A, A + 1, t(2.0)); torch.dist(A, A + 1, p=t(1)); L.vector_norm(A, ord=t(0.5))
    """,
    "NaN is not 0 or more": """
        n = float("nan"); torch.cdist(A, A, p=n); torch.pdist(A, n); torch.cdist(A, A, p=-1.0)
        A.renorm(n, 0, 1); A.renorm(2, 0, n); A.renorm(0, 0, 1); torch.isclose(A, A, rtol=n)
        torch.allclose(A, A, atol=n); torch.isclose(A, A, atol=-1.0); A.clone().exponential_(n)
        A.clone().cauchy_(0, n); A.clone().log_normal_(0, n); A.clone().log_normal_(0, -1)
    """,
    "powers lie row by row": """
        [L.matrix_power(A.mT, k).stride() for k in range(4)]; L.matrix_power(A[:2, :2], 1).stride()
        V = W.mT; torch.addr(V, V[:, 0], V[0]).stride()
        torch.addr(V, V[:, 0], V[0], beta=0).stride()
        torch.addr(A[:2, :2], A[0, :2], A[:2, 0]).stride(); torch.addr(A[0], A[1], A[0]).stride()
        torch.addr(V, V[:, 0], V[0], alpha=2, out=A.new_empty(0)).stride(); V.addr(A[0, :2], A[0])
        torch.addr(A[:1].mT, A[0], A[0]).stride(); V.clone().addr_(A[0, :2], A[0]).stride()
    """,
    "out= that overlaps": """
        L.cross(A, A + 1, out=A); L.cross(A, A + 1, dim=0, out=A); L.cross(A[:1] + 1, A, out=A)
        torch.outer(A[0], A[1], out=A); torch.where(A > 2, A.mT, A, out=A)
        torch.max(A, A.mT, out=A)
        torch.where(A > 2, A[0], A, out=A); torch.min(A, 0, out=(A[0], torch.empty(0).long()))
        torch.max(A, A + 1, out=A); torch.where(A > 2, A, A + 1, out=A); A
        torch.outer(A[0].clone(), A[1].clone(), out=A); L.cross(A.clone(), A + 1, out=A)
    """,
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", SESSIONS)
def test_found(name: str) -> None:
    compare(dedent(START) + dedent(SESSIONS[name]))
