"""Limits and refusals of special functions and rounding, as sessions."""

from __future__ import annotations

from textwrap import dedent

import pytest
from helpers.sessions import compare

START = """
    inf, nan, d = float("inf"), float("nan"), torch.float64
    F, P = torch.nn.functional, torch.special
    x, y, z = torch.ones(2), torch.ones(3), torch.ones(2, 3, dtype=torch.cfloat); i = x.long()
"""

SESSIONS = {
    "incomplete gamma functions at their limits": """
        a = torch.tensor([0, 0, 0, inf, inf, 0, 0, -1, 1, 1, 0, inf, nan, 2, inf, -inf, 1])
        b = torch.tensor([0.5, 1e-3, 0, 1, inf, inf, -1, 1, inf, 0, nan, 0, 1, -1, -1, 1, -inf])
        torch.igamma(a, b); torch.igammac(a, b); torch.igamma(a.to(d), b.to(d))
        torch.igammac(a.to(d), b.to(d)); c = b[:1].clone().requires_grad_()
        torch.autograd.grad(torch.igamma(a[:1], c).sum(), c)
    """,
    "shapes that do not fit": """
        torch.nextafter(x, y); P.xlog1py(x, y); P.zeta(x, y); torch.igamma(x, y)
        torch.igammac(x, y); torch.polar(x, y); torch.gcd(i, y.long()); torch.lcm(i, y.long())
        torch.gcd(x, y); torch.igamma(i, y); torch.ldexp(x, y); torch.ldexp(x, y.long())
    """,
    "dtypes that mvlgamma does not take": """
        torch.mvlgamma(x > 0, 2); torch.mvlgamma(z, 2); P.multigammaln(x > 0, 1)
        (x > 0).mvlgamma_(2); z.mvlgamma_(1); torch.mvlgamma(i + 3, 2); torch.mvlgamma(z, 0)
    """,
    "rounding of whole numbers": """
        P.round(i); P.round(i, decimals=1); P.round(x > 0); P.round(x * 1.5)
        P.round(x * 1.55, decimals=1)
        torch.round(i); torch.round(i, decimals=0); i.clone().round_(); i.clone().round_(decimals=0)
        P.round(x.clone().requires_grad_()).grad_fn.name(); i.round(decimals=1)
        P.round(i.int(), out=i.int()); x.round(decimals=0); P.round(input=x)
    """,
    "powers of two": """
        s = torch.ones((), dtype=torch.cdouble); torch.ldexp(s, i); torch.ldexp(s, i.int())
        torch.ldexp(s.to(torch.cfloat), i); torch.ldexp(s, x); torch.ldexp(z[0, :2], i)
        t = torch.tensor([1e-45, -1e-45, 3e-42, 1e-38, 1.0, 0.0, inf, -inf, nan])
        torch.frexp(t); torch.frexp(torch.tensor([5e-324, 1e-310, 2.0], dtype=d))
        torch.frexp(torch.tensor([6e-8, 1e-7, 2.0]).half())
        torch.frexp(torch.tensor([1e-40, 2.0]).bfloat16())
        w = torch.tensor([3.0, -0.3], requires_grad=True)
        torch.autograd.grad(torch.frexp(w)[0].sum(), w)
    """,
    "how an angle lies": """
        z.t().angle().stride(); z.permute(1, 0).angle().stride(); z.real.t().angle().stride()
        z.t().conj().angle().stride(); z.t().abs().stride(); z.t().sgn().stride()
    """,
    "bounds that half precision cannot hold": """
        h = torch.tensor([inf, -inf, nan]).half(); torch.nan_to_num(h, posinf=1e6, neginf=-1e6)
        torch.nan_to_num(h, nan=1e40); torch.nan_to_num(h.float(), posinf=1e300)
        torch.nan_to_num(h.bfloat16(), 1.0, 2.0, 3.0); torch.nan_to_num(h)
    """,
    "a leaky relu of whole numbers": """
        F.rrelu(i); F.rrelu(i, training=True); F.rrelu(x > 0); F.rrelu_(i.clone()); F.rrelu(z)
    """,
    "activations of what is no tensor": """
        F.relu([1.0]); F.relu6(1); F.hardswish(None); F.hardsigmoid(1.0); F.hardtanh("a"); F.elu(1)
        F.silu(1); F.mish(1); F.leaky_relu(1, 0.1); F.rrelu(1); F.celu([1]); F.threshold([1], 1, 2)
        F.relu(1, inplace=True); F.relu6(1, inplace=True); F.silu(1, True); F.rrelu(1, inplace=True)
        F.relu_(1); F.elu_([1.0]); F.relu_(input=1); F.relu_(input=x - 2); F.selu_(input=None)
    """,
    "the dtype of out": """
        b, e = x > 0, lambda k, *n: torch.empty(n, dtype=k); torch.float_power(x, 2, out=e(d, 2))
        torch.float_power(x, 2, out=x.clone()); torch.float_power(x, 2, out=e(torch.cdouble, 2))
        torch.float_power(z, 2, out=e(d, 2, 3)); torch.float_power(x, 2, out=x.half())
        eye, L = torch.eye(2), torch.linalg; L.matrix_rank(eye, out=e(torch.bool))
        L.matrix_rank(eye, out=e(torch.int32)); L.matrix_rank(eye, out=e(torch.float32))
        L.matrix_power(eye, 2, out=e(d, 2, 2)); L.matrix_power(eye, 1, out=e(d, 2, 2))
        L.matrix_power(eye, -1, out=e(d, 2, 2)); torch.matrix_power(eye, 0, out=e(d, 2, 2))
        torch.matmul(z.real, y, out=e(d, 2)); torch.mv(z.real, y, out=e(d, 2))
        torch.matmul(z.real, y, out=e(d, 0)); torch.mv(z.real, y, out=e(d, 1, 2))
        torch.matmul(z.real[None], y, out=e(d, 1, 2)); L.matmul(z.real, y, out=e(d, 2))
        torch.heaviside(x, x, out=e(torch.cfloat, 2)); torch.heaviside(x, x, out=e(d, 2))
        torch.ldexp(x, i, out=i.clone()); x.clone().ldexp_(z[0, :2]); i.clone().ldexp_(x)
        i.clone().mvlgamma_(2); torch.mvlgamma(x + 2, 2, out=i.clone())
    """,
    "differences of truths": """
        b = torch.tensor([True, False, False, True]); torch.diff(b, out=b[:3].clone())
        torch.diff(b, out=torch.ones(3)); torch.diff(b, n=2, out=torch.ones(2).int())
        torch.diff(b, n=0, out=b.clone()); torch.diff(b, n=0, out=torch.ones(4))
        torch.diff(i, out=x[:1].clone()); torch.diff(x, out=i[:1].clone())
    """,
    "the name of an error": """
        E = torch.linalg.LinAlgError; repr(E).split(".")[1:], torch._C._LinAlgError is E
    """,
    "truths for numbers": """
        m, n = torch.ones(3, 2), torch.ones(3); torch.addr(m, n, x, beta=True)
        torch.addr(m, n, x, alpha=True); torch.addr(m > 0, n > 0, x > 0, beta=True, alpha=True)
        torch.addr(m > 0, n > 0, x > 0, alpha=2.0)
        torch.addr(m.int(), n.int(), i.int(), alpha=True)
        m.clone().addr_(n, x, beta=False); torch.addr(m, n, x, beta=2)
    """,
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", SESSIONS)
def test_found(name: str) -> None:
    compare(dedent(START) + dedent(SESSIONS[name]))
