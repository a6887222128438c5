"""`out=`: what it must be, which types it may have, and what autograd says of it, as sessions."""

from __future__ import annotations

import pytest
from helpers.sessions import compare

SESSIONS = {
    "kinds": """
        a, i = torch.arange(4.0).view(2, 2), torch.zeros(2, dtype=torch.int64); Z = torch.zeros
        torch.sin(a, out=(Z(2),)); torch.mm(a, a, out=[Z(2)]); torch.cat([a], out=()); a.eq(a)
        torch.linalg.inv(a, out=3); torch.linalg.inv(a, out=(Z(2),)); torch.fft.fft(a, out="a")
        torch.special.entr(a, out=(Z(2),)); torch.gather(a, 0, i[None], out=(Z(2),))
        torch.eq(a, a, out=(Z(2),)); torch.add(a, a, out=[Z(2)]); torch.std(a, 0, out=(Z(2),))
        torch.topk(a, 1, out=Z(2)); torch.topk(a, 1, out=()); torch.topk(a, 1, out=(Z(2),) * 3)
        torch.topk(a, 1, out=(Z(2), 3)); torch.sort(a, out=(Z(2), None)); torch.sort(a, out=Z(2))
        torch.max(a, 0, out=(Z(2),)); torch.linalg.svd(a, out=(Z(2), Z(2), 3))
        torch.linalg.qr(a, out=Z(2)); torch.linalg.qr(a, out=(Z(2), 3)); torch.aminmax(a, out=Z(2))
        torch.frexp(a, out=(Z(2),)); torch.kthvalue(a, 1, out=(Z(2), i, i)); torch.mode(a, out=3)
    """,
    "named results": """
        a, E = torch.tensor([[3.0, 1.0], [1.0, 2.0]]), torch.empty; i = torch.int64
        r = torch.max(a, 0, out=(E(0), E(0, dtype=i))); r; type(r).__name__, r.values
        torch.sort(a, out=[E(0), E(0, dtype=i)]); torch.median(a, 0, out=(E(2), E(2, dtype=i)))
        torch.aminmax(a, dim=0, out=(E(0), E(0))).min; type(torch.qr(a)), type(torch.slogdet(a))
        type(torch.lu_unpack(*torch.linalg.lu_factor(a))); torch.slogdet(a, out=(E(0), E(0)))
        type(torch.linalg.qr(a, out=(E(0), E(0)))), type(torch.qr(a, out=(E(0), E(0))))
    """,
    "how it lies where it was resized": """
        a, E = torch.arange(6.0).view(2, 3).t(), torch.empty; b, i = a + 1, torch.int64
        s = lambda *o: [x.stride() for x in o]
        s(torch.add(a, b, out=E(0)), torch.sin(a, out=E(2)), torch.where(a > 1, a, b, out=E(0)))
        s(torch.clamp(a, 1, out=E(0)), torch.lerp(a, b, 0.5, out=E(0)))
        s(*torch.sort(a, 0, out=(E(0), E(0, dtype=i))))
        s(torch.msort(a, out=E(0)), torch.diff(a, dim=0, out=E(0)))
        s(torch.nonzero(a, out=E(0, dtype=i)), torch.nonzero(a, out=E(5, 2, dtype=i)))
        s(torch.kron(a, b, out=E(0)), torch.nan_to_num(a.long(), out=E(0, dtype=i)))
        s(torch.add(a, b, out=E(3, 2)), torch.cumsum(a, 0, out=E(0)))
        s(torch.polygamma(1, b, out=E(0)), torch.special.polygamma(2, b, out=E(0)))
    """,
    "where there is none": """
        a = torch.eye(2); o = torch.empty(0)
        torch.flip(a, (0,), out=o); torch.roll(a, 1, out=o); torch.det(a, out=o)
        torch.rot90(a, out=o); torch.rsub(a, a, out=o); torch.squeeze(a, out=o)
        torch.relu(a, out=o); torch.isnan(a, out=o); torch.select(a, 0, 0, out=o);
        torch.matrix_exp(a, out=o); torch.reshape(a, (4,), out=o)
        torch.std_mean(a, out=o); torch.chunk(a, 2, out=o)
    """,
    "types": """
        a, E, c = torch.eye(2) + 1, torch.empty, torch.complex128; l, d = torch.int64, torch.double
        torch.clamp(a, a, out=E(2, 2, dtype=d)); torch.clamp(a, a, out=E(2, 2, dtype=l))
        torch.clamp(a, 0, out=E(2, 2, dtype=d)); torch.angle(a, out=E(2, 2, dtype=d))
        torch.fft.fft(a, out=E(0, dtype=d)); torch.fft.irfft2(a, out=E(0, dtype=l))
        torch.fft.ihfft2(a, out=E(0, dtype=d)); torch.fft.irfft(a, out=E(0, dtype=d))
        torch.fft.ifftn(a, out=E(0)); torch.fft.fft(a, out=E(0, dtype=c)).dtype
        torch.linalg.pinv(a, out=E(0, dtype=d)).dtype; torch.linalg.pinv(a, out=E(0, dtype=l))
        torch.cholesky_inverse(a, out=E(0, dtype=l)); torch.inner(a, a, out=E(2, 2, dtype=d))
        torch.linalg.eigvals(a, out=E(0)); torch.linalg.cond(a, out=E(0, dtype=d))
        torch.linalg.matrix_rank(a, out=E(0)); torch.quantile(a, 0.5, out=E((), dtype=d))
        torch.mode(a, out=(E(0, dtype=l), E(0))); torch.frexp(a, out=(E(0), E(0)))
        torch.kthvalue(a, 1, out=(E(0), E(0))); torch.cummax(a, 0, out=(E(0, dtype=l), E(0)))
        torch.mv(a, a[0], out=E(2, dtype=l)); torch.linalg.norm(a, out=E((), dtype=d))
        torch.polar(a, a, out=E(0)); torch.logaddexp2(a, a, out=E(2, 2, dtype=d)).dtype
        torch.linalg.vecdot(a, a, out=E(0, dtype=l)); torch.eq(a, a, out=E(3, dtype=torch.bool))
        torch.eq(a, a, out=E(3)); torch.signbit(a, out=E(3))
        torch.special.entr(a, out=E(0, dtype=d)); torch.special.i1(a, out=E(0, dtype=l))
        torch.ldexp(a, a, out=E(0, dtype=l)); torch.float_power(a, 2, out=E(0, dtype=l))
        torch.msort(a, out=(a,)); torch.nn.functional.logsigmoid(a, out=(a,))
        torch.logsumexp(a, 0, out=E(2, dtype=l))
    """,
    "in sight of autograd": """
        a, E = (torch.eye(2) + 1).requires_grad_(), torch.empty; b, r = a.detach(), E(2, 2)
        torch.linalg.inv(a, out=r); z = r + 0j; torch.fft.rfft(a, out=z); torch.fft.ifft2(a, out=z)
        torch.square(a, out=r); torch.hstack([a], out=r); torch.linalg.eigvalsh(a, out=r)
        torch.special.entr(a, out=r); torch.outer(a[0], a[0], out=r); torch.qr(a, out=(r, r))
        torch.take_along_dim(a, b.long() * 0, 0, out=r); torch.linalg.det(a, out=r)
        q = torch.quantile(a, 0.5, out=E(())); q, q.grad_fn.name(); q.backward(); a.grad
        q = torch.linalg.cond(a, out=E(())); q, q._version; q.backward(); a.grad
        torch.special.ndtr(a, out=E(2, 2)).sum().backward(); a.grad; torch.quantile(b, 0.5, out=a)
        torch.linalg.norm(b, out=E((), requires_grad=True))
    """,
    "without a derivative": """
        a, E = torch.tensor([1.0, 2.0], requires_grad=True), torch.empty; l = torch.int64
        r = E(2); torch.softmax(a, 0, out=r); r.grad_fn.name(), r._version; r.sum().backward()
        r = E(2, 1); torch.view_copy(a, (2, 1), out=r); r.grad_fn.name(); r[0].backward()
        r = E(2, 2); v = r[0]; torch.heaviside(a, a, out=v); v.grad_fn.name(), r.grad_fn.name()
        r = E(2, 2); torch.diag(a, out=r); r.sum().backward(); torch.floor_divide(a, 2, out=E(2))
        torch.expand_copy(a, (2, 2), out=E(2, 2, requires_grad=True)); torch.t_copy(r, out=a)
        torch.log_softmax(a.detach(), 0, out=a); torch.conj_physical(a, out=E(0, dtype=l))
        torch.conj_physical(a.detach(), out=E(0)); torch.conj_physical(a, out=E(2)).grad_fn.name()
        with torch.no_grad(): print(torch.softmax(a, 0, out=E(2)).requires_grad)
        torch.detach_copy(a, out=E(2)).grad_fn.name(); torch.expand_copy(a, (2, 2), out=(r,))
    """,
    "layout of what is resized": """
        a, E = torch.tensor([[3.0, 1.0], [1.0, 2.0]]), torch.empty
        s = lambda *o: [x.stride() for x in o]
        s(torch.linalg.cholesky(a, out=E(0)), torch.linalg.inv(a, out=E(3)))
        s(*torch.linalg.qr(a, out=(E(0), E(2, 2)))); s(*torch.qr(a, out=(E(0), E(0))))
        s(torch.linalg.solve(a, a, out=E(0)), torch.linalg.solve(a, a, out=E(2, 2)))
        s(*torch.linalg.svd(a, out=(E(0), E(0), E(0)))); s(*torch.geqrf(a, out=(E(0), E(0))))
        s(torch.linalg.matrix_exp(a), torch.linalg.pinv(a, out=E(0)))
    """,
    "lists of copies": """
        a, Z = torch.arange(4.0, requires_grad=True), torch.zeros; o = [Z(2), Z(2)]
        torch.split_copy(a, 2, out=o); o; torch.split_copy(a, [1, 3], out=(Z(1), Z(3)))
        torch.split_copy(a, 2, out=[Z(2, 2), Z(2).int()]); torch.split_copy(a, 2, out=[Z(3), Z(2)])
        torch.split_copy(a, 2, out=[Z(2)]); torch.split_copy(a, 2, out=Z(2)); o[0]._version
        torch.split_copy(a, 2, out=[Z(2), 3]); torch.unbind_copy(a.view(2, 2), out=o); o
        torch.unbind_copy(a.view(2, 2), out=[Z(3), Z(0)]); torch.unbind_copy(a, out=o)
        torch.unbind_copy(a.view(2, 2), out=[Z(2).int(), Z(2)])
        torch.unbind_copy(a.view(2, 2), out=[Z(2), Z(2, requires_grad=True)])
        torch.split_with_sizes_copy(a, [1, 3], out=o); o; torch.split_with_sizes_copy(a, [4], out=o)
        torch.view_copy(a.detach(), (2, 2), out=Z(3)); torch.diagonal_copy(Z(2, 2), out=Z(2).int())
    """,
    "where there was none": """
        a, E, l = torch.tensor([1.0, 0.0, 2.0]), torch.empty, torch.int64; i = E(0, dtype=l)
        torch.nonzero(a, out=i); i; torch.nonzero(a, out=E(0))
        torch.nonzero(a, out=i, as_tuple=True)
        torch.nonzero(a, out=(i,)); torch.nonzero(a, out=E(5, dtype=l), as_tuple=False)
        torch.nonzero_static(a, size=2, out=E(0, dtype=l)); torch.nonzero_static(a, size=1, out=a)
        torch.histc(a, 2, out=E(0)); torch.histc(a, 2, out=i); torch.histc(a, 2, out=E(2, 2))
        torch.histc(a, 2, out=(a,)); torch.histogram(a, 2, out=(E(0), E(5)))
        torch.histogram(a, 2, out=(E(0), i)); torch.histogram(a, 2, out=(i, E(0)))
        torch.histogram(a, 2, out=(a,)); torch.histogram(a, 2, out=(E(0), 3))
        torch.isin(a, a, out=E(0, dtype=torch.bool)); torch.isin(a, a, out=E(0))
        torch.isin(a, 1, invert=True, out=E(3, dtype=torch.bool))
        torch.masked_select(a, a > 0, out=E(0, requires_grad=True))
        torch.masked_select(a, a > 0, out=E(5)); torch.masked_select(a, a > 0, out=i)
        torch.masked_select(a.clone().requires_grad_(), a > 0, out=E(0))
        torch.index_reduce(a, 0, torch.tensor([0, 1]), a[:2], "prod", out=E(0))
    """,
    "what is joined": """
        z, f = torch.ones(3) * 1j, torch.zeros(3)
        torch.cat([z, torch.ones(2, 2)], out=f); torch.cat([z], 3, out=f); torch.cat([], out=f)
        torch.cat([z, torch.tensor(1.0)], out=f); torch.cat([z.view(1, 3), f.view(3, 1)], out=f)
        torch.cat([z, z], dim=-2, out=f); torch.stack([z, f[:2]], out=f)
        torch.dstack([z, f[:2]], out=f); torch.column_stack([z, f[:2]], out=f)
        torch.cat([f, f[:0]], out=f); torch.hstack([f, f[:0]], out=f); torch.cat([f, f], out=f)
        f = torch.zeros(3); torch.cat([f[:1], z.real[:2]], out=f); f
        f = torch.zeros(1, 3); torch.vstack([f, f[:0]], out=f); torch.cat([f.view(1, 3)], out=f)
    """,
    "memory that repeats": """
        a, E = torch.ones(2, 2), lambda *shape: torch.zeros(1).expand(shape)
        torch.sum(a, 0, out=E(3, 3)); torch.sum(a, 0, out=E(4)); torch.add(a, 1, out=E(3, 3))
        torch.add(a, 1, out=E(2, 2)); torch.mm(a, a, out=E(2, 3)); torch.cat([a, a], out=E(3))
        x = E(3, 3); torch.amax(a, 1, out=x).stride(); x
    """,
    "shapes broadcast together": """
        f = torch.broadcast_shapes
        f((3, 5), (2, 4, 1)); f(3, 5, (2, 4, 1)); f((1, -1)); f((2,), (-1,)); f((-1,), (2,)); f(-3)
        f(None, 3, None); f(None); f(); f((0,), (2,)); f([2, 1], torch.Size([1, 3])); f(1.5)
        f(0, 1)
    """,
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", SESSIONS)
def test_out(name: str) -> None:
    compare(SESSIONS[name])
