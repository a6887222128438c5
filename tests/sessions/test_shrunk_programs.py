"""Programs that the fuzzer of the whole vocabulary found, shrunk, sorted by subject."""

from __future__ import annotations

import fuzz
import pytest
from helpers import fuzz_programs

SEEING = (
    "with torch.autograd.graph.saved_tensors_hooks("
    "lambda t: (see(t.shape, t._version, t._is_view(), t.detach()), t)[1], lambda t: t)"
)
KEEPING = "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)"
LOST = "with torch.inference_mode(): x = d[1:]", "d.pow_(2)"
WATCHED = "with torch.autograd.graph.allow_mutation_on_saved_tensors()"
FOUND = {
    "comparisons in place have a node whose gradient is zero": (
        ("d.eq_(c)", "d.sum().backward()"),
        ("d.lt_(0.5)", "d.sum().backward()"),
        ("d[0].ge_(c)", "d.sum().backward()"),
    ),
    "logical writes leave autograd out": (
        ("c.logical_not_()",),
        ("d.logical_not_()", "d.sum().backward()"),
    ),
    "a base that was detached: its views keep a node": (
        ("x2 = b.unfold(0, 1, 1)", "b.detach_()", "b[::2] = 0.5"),
        ("x2 = d.view(-1)", "d.detach_()", "d[::2] = 0.5", "x2.sum().backward()", "x2.mul_(2)"),
        ("x2 = d.view(-1)", "d.detach_()", "d[::2] = 0.5", "d.requires_grad_()", "y = x2 * c[:1]"),
    ),
    "a view made without grad mode can become a leaf": (
        ("with torch.no_grad(): x3 = b.adjoint()", "x3.requires_grad_(True)",
         "x3.sum().backward()", "b.sum().backward()"),
        ("with torch.no_grad(): x3 = b.adjoint()", "x3.requires_grad_(True)",
         "x3.requires_grad_(False)", "y = x3 * 2"),
    ),
    "`.data` of an inference tensor": (
        ("with torch.inference_mode(): x0 = c.sum()", "x4 = c.sum()", "x4.data = x0",
         "y = x4 * 2"),
        ("with torch.inference_mode(): x0 = c * 2", "c.data = x0", "c.sum().backward()"),
    ),
    "outputs under saved-tensor hooks know their number": (
        ("with keeping(): x1, x2 = torch.std_mean(b, 0)", "see(x2.output_nr)",
         "x2.retain_grad()", "(x1 * x2).sum().backward()"),
    ),
    "`increment_version` renews the history of views": (
        ("x0 = b.mT", "torch.autograd.graph.increment_version(b)"),
        ("x6 = b.hsplit(1)[0]", "torch.autograd.graph.increment_version(x6)"),
        ("x1, x2 = a.chunk(2, -1)", "torch.autograd.graph.increment_version(x2)",
         "(a * c).sum().backward()"),
    ),
    "writes in inference mode to a normal tensor's view": (
        ("x = b * 2", "with torch.inference_mode(): y = Dirty.apply(x[:1])"),
    ),
    "numbers that nodes save under hooks": (
        ("with keeping(): x = c * 2j; y = c / 2; w = 2.5 * c", "see(saved(x.grad_fn))",
         "see(saved(y.grad_fn))", "see(saved(w.grad_fn))"),
        ("with keeping(): x = d[None, torch.tensor([0, 1])]; y = d ** 3", "see(saved(x.grad_fn))",
         "see(saved(y.grad_fn))"),
    ),
    "results are saved whatever gradient needs them": (
        ("x = d ** torch.tensor(2.0)", "see(saved(x.grad_fn))", "x.mul_(2)", "x.sum().backward()"),
        ("x = a.copysign(d)", "x.mul_(2)", "x.sum().backward()"),
        ("x = d.float_power(a)", "x.mul_(2)", "x.sum().backward()"),
        ("x = d ** 2", "x.mul_(2)", "x.sum().backward()"),
    ),
    "comparisons do not ask views for their history": (
        ("x = a.t()", "a[-1] = c.sum()", "y = x != 1", "x[...] = 0.5"),
        ("x = a.t()", "a[-1] = c.sum()", "y = x.argmax(); w = x * 2", "x[...] = 0.5",
         "a.sum().backward()"),
    ),
    "running products read the result that they saved": (
        ("a.mul_(b)", "a.cumprod_(0)", "a.data[0] = 0.5",
         "a.sum().backward(create_graph=True); (b.grad * b.grad).sum().backward()"),
        ("d[:, 1] = 0", "x = d.cumprod(1)", "x.data[0] = 0.5", "(x * x).sum().backward()"),
        ("x = z.cumprod(0)", "x.data[0] = 0.5", "x.abs().sum().backward()"),
        ("x = d.tril()", "x.cumprod_(0)", "see(repr(x))"),
        ("x = d.copysign(a)", "x.data[0] = 0.5", "x.sum().backward()"),
    ),
    "assignment to whole dims and indices is differentiated twice": (
        ("d[:, [0, 2]] = c[:2]", "x = d[None, torch.tensor([0])]",
         "(x ** 3).sum().backward(create_graph=True); (b.grad ** 2).sum().backward()"),
        ("d[torch.tensor([0, 1]), 1:2] = c[:1]",
         "see.gradients(*torch.autograd.grad((d ** 3).sum(), (b, c), create_graph=True))"),
    ),
    "what was written to is told by the shape that it has by now": (
        ("a.div_(2)", "x = d.mul(a)", "a.t_()", "x.sum().backward()"),
        ("x = d.mul(a)", "a[0].zero_()", "a.t_()", "x.sum().backward()"),
        ("y = d.clone()", "x = d.mul(y)", "y.unsqueeze_(0)", "x.sum().backward()"),
    ),
    "unsafe splits share memory, not versions": (
        ("x, y = d.unsafe_chunk(2, -1)", "x.exp_().sin_()"),
        ("x, y = d.unsafe_split(1)", "x.mul_(2)", "see(d._version, x._version)",
         "d.sum().backward()", "d.mul_(2)"),
        ("x, y = torch.unsafe_split(d, 1)", "x.tanh_()", "d[:, 1] = 0.5", "x.sum().backward()"),
        ("x, y = torch.unsafe_split(d, 1)", "w = x * x", "d.data[:, 1] = 0.5",
         "w.sum().backward()"),
    ),
    "gradients of linear ops do not depend on their inputs": (
        ("x = d.tril()", "g = torch.autograd.grad(x.sum(), b, create_graph=True)[0]",
         "see(g.requires_grad)"),
        ("with keeping(): x = d.gather(0, torch.zeros(1, 3, dtype=torch.int64))",
         "see(torch.autograd.grad(x.sum(), b, create_graph=True)[0].requires_grad)"),
        ("x = d.sort(0)[0].masked_fill(a > 0, 1).triu().diag()",
         "see(torch.autograd.grad(x.sum(), b, create_graph=True)[0].requires_grad)"),
    ),
    "0-dim tensors transposed": (
        ("s = c.sum()", "x = s.mT; y = s.T; w = s.H; v = s.mH; u = s.adjoint(); t = +s", "q = c.T"),
        ("y = c.sum().mT.mul_(2)", "x = d.H"),
    ),
    "parts of conjugates": (
        ("x = z.conj().imag", "y = z.conj().real", "see(x.is_neg(), x._base is z)",
         "x.sum().backward()"),
    ),
    "copies": (
        ("with torch.inference_mode(): x = a * 2; y = copy.copy(a); w = copy.copy(b)",
         "v = copy.copy(x)", "v.add_(1)", "u = copy.deepcopy(x)"),
        ("x = copy.copy(b)", "x.data.mul_(2)", "y = copy.deepcopy(c)", "w = copy.copy(d)"),
        ("x = pickle.loads(pickle.dumps(d))", "y = pickle.loads(pickle.dumps(a[0]))"),
        ("x1 = once(c)", "x6 = copy.copy(c)", "d.register_hook(lambda g: g)", "x7 = copy.copy(d)"),
    ),
    "a warning comes after the refusal": (
        ("x = torch.ones_like(b)", "x.sum().backward(create_graph=True)"),
        ("c.copy_(z[0])",),
    ),
    "warnings": (
        ("x = z.double()", "x.copy_(z)", "x[0] = z[0]", "x.fill_(z[0, 0])"),
        ("x = c[:1].var(0)", "y = c.sum().std()", "w = torch.std_mean(c[:1], 0)"),
        ("x = z[:, :1].var(-1)", "y, w = torch.std_mean(z[:, :1], -1)"),
        ("x = d.var(0, correction=2)", "y = c[:1].var(0, unbiased=False)"),
    ),
    "functions that PyTorch makes of views": (
        ("x, y = torch.broadcast_tensors(d, c)", "x.mul_(2)"),
        ("x, y = torch.meshgrid(c, c, indexing='xy')", "(x * y).sum().backward()"),
        ("x = torch.hstack([c, c.sum()])", "y = torch.vstack([d, c])",
         "w = torch.column_stack([c, d.t()])", "v = torch.dstack([d, d])"),
        ("x = d.repeat_interleave(2)", "y = d.repeat_interleave(2, 1)",
         "w = d.sum().repeat_interleave(3)", "x.sum().backward()"),
    ),
    "names and edges": (
        ("x = d.diag()", "y = d.sort(stable=True)[0]", "w = c * True",
         "v = d.narrow(0, torch.tensor(0), 1)", "u = d.broadcast_to(2, 2, 3)"),
        ("i = torch.zeros(1, 3, dtype=torch.int64)", "x = d.scatter(0, i, 0.5)",
         "y = d.scatter(0, i, d)"),
        ("x = F.linear(d, b)", "y = F.linear(d, b, c[:2])", "w = F.linear(d[None], b, c[:2])",
         "v = F.linear(d[0], b)", "(x + y).sum().backward()"),
        ("x = F.layer_norm(d, (3,))", "y = F.group_norm(d[None], 1)",
         "w = F.batch_norm(d, None, None, training=True)"),
        ("x = F.nll_loss(d, torch.tensor([0, 1]))", "y = F.embedding(torch.tensor([0, 1]), b)",
         "w = F.conv1d(d[None], b[:, None, :2].expand(2, 2, 2))"),
    ),
    "refusals": (
        ("x = torch.zeros(2, dtype=torch.int64, requires_grad=True)",),
        ("y = torch.std_mean(z, 0)[1].nan_to_num_()", "w = F.silu(z * 1, inplace=True)",
         "(z * 1)[0].nan_to_num_().sum().abs().backward()"),
        ("x = c.sum().unbind(-1)", "y = d.split([1, 1], -1)", "w = c.sum().mv(c)"),
        ("x = z.nan_to_num()", "y = F.silu(z)", "w = z.unique()", "v = z.unique_consecutive()"),
        ("x = every(a, b)", "y = some(a, b)", "b.sum().backward()"),
        ("d //= 2", "d.sum().backward()"),
        ("c[torch.tensor([True, False])] = 1.0", "d[torch.tensor([True])] = 1.0"),
        ("n = torch.ones(3, dtype=torch.int64)", "x = F.kl_div(n, c)", "y = F.kl_div(c, n > 0)",
         "w = F.kl_div(c, z[0], reduction='sum')", "v = torch.kl_div(z, z)"),
        ("x = d.index_fill(0, torch.tensor([0]), c.sum())",
         "d.index_fill_(0, torch.tensor([0]), c.sum())"),
        ("n = torch.arange(3)", "x = n.dist(n)", "y = n.view(1, 3).renorm(2, 0, 1.0)"),
        ("n = torch.ones(2, 2, dtype=torch.bool)", "n.cumsum_(0)", "n.cumprod_(0)"),
        ("with torch.inference_mode(): n = torch.ones(2, 2, dtype=torch.bool)",
         "n.requires_grad_()"),
        ("d @= c", "see(d._version)"),
        ("x = F.batch_norm(c, None, None, training=True)", "y = F.linear(z, b)"),
    ),
    "views that nobody can tell the history of have values": (
        ("x = d.unbind(0)[0]", "d.square_()", "y = x > 0", "w = torch.isnan(x)", "v = c < x",
         "see(int(x.argmax()), bool((x > 0).all()))", "u = x * 2"),
    ),
    "how a view is seen has no edges": (
        ("x = d.narrow(0, torch.tensor(0), 1)", "x[:1].copy_(x[-1:])", "d.sum().backward()"),
    ),
    "a write that a Function may not make is counted": (
        ("x, y = z.unbind(-1)", "DirtyPair.apply(x, x)"),
    ),
    "`out=` of ops whose kernels know one dtype": (
        ("torch.neg(a, out=torch.zeros(2, 3))",),
        ("torch.abs(z.detach(), out=torch.zeros(2, 2))",
         "torch.clamp(a, 0, 1, out=torch.zeros(2, 3))"),
    ),
    "a gradient that is copied is of the mode that backward runs in": (
        ("with torch.inference_mode(): b.backward(a)", "see(b.grad.is_inference())"),
        ("with torch.inference_mode(): x = a * 2", "b.backward(x)", "see(b.grad.is_inference())",
         "b.grad.add_(1)", "c.retain_grad(); (c * 1).backward(torch.ones_like(c))"),
    ),
    "detached inference tensors may be written to": (
        ("with torch.inference_mode(): x = a * 2", "x.data.copy_(a)", "x.detach().add_(1)",
         "see(x.detach()._version)", "y = x.detach()", "y.add_(1)", "see(y._version)"),
    ),
    "forward mode of parts of tensors inside vmap": (
        ("x = torch.func.jacfwd(lambda t: t ** 3)(c[:1]).detach().clone()",
         "y = torch.func.hessian(lambda t: (t ** 3).sum())(d[:1]).detach().clone()",
         "w = torch.func.jacfwd(lambda t: t ** 3)(a.t()).detach().clone()"),
    ),
    "writes of bools that accumulate": (
        ("n = a > 0", "n.index_add_(0, torch.tensor([0, 0]), n.clone())",
         "n.scatter_add_(1, torch.zeros(2, 3, dtype=torch.int64), n.clone())",
         "n.index_put_((torch.tensor([1]),), n[0].clone(), accumulate=True)",
         "x = torch.kron(n, n)", "n.index_reduce_(0, torch.tensor([0]), n[:1].clone(), 'amax')"),
    ),
    "a checkpoint saves its arguments": (
        ("with torch.inference_mode(): x = c * 2", "y = again_in(False, again, x)",
         "with torch.no_grad(): w = again_in(False, again, x)"),
    ),
    "sum_to_size returns the tensor itself": (
        ("see(d.sum_to_size(2, 3) is d, c.sum().sum_to_size(()).grad_fn)",
         "x = d[0, :1].sum_to_size(1)", "y = d[None].sum_to_size(2, 3)"),
    ),
    "views that were written to stay with the old memory": (
        ("x = d.clone(); y = x[:1]; w = y.view(-1)", "w.round_()",
         "a.data, x.data = x.data, a.data", "y.sum().backward()"),
    ),
    "as_strided in inference mode": (
        ("x = d[0]", "with torch.inference_mode(): y = x.as_strided((2, 2), (2, 1), 0)",
         "with torch.no_grad(): y.mul_(2)"),
    ),
    "conjugates lie as what they are of": (
        ("x = z.adjoint()", "y = x.contiguous()", "see(x.stride(), z.H.is_contiguous())",
         "see((z.t().conj() * 2).stride(), z[:, 0].conj().stride(), x.imag.stride())"),
        ("x = z.mH.reshape(-1)", "y = z.adjoint().view(-1)", "w = z.mH.flatten()"),
    ),
    "hooks on several tensors do not count where a pass begins": (
        ("x, y = torch.broadcast_tensors(c, c)", "w = every(b, y)",
         "c.backward(torch.ones_like(c), retain_graph=True)"),
        ("x = every(d, b)", "d.backward(torch.ones_like(d))", "y = every(c, c)",
         "c.backward(torch.ones_like(c))", "c.sum().backward()"),
        ("x = every(b, d.view(3, 2))", "torch.autograd.grad(d.sum(), b)"),
        ("x = every(b, d)", "d.sum().backward(inputs=[b])", "torch.autograd.grad((d * c).sum(), c)",
         "torch.autograd.grad((d * c).sum(), [d, c])"),
    ),
    "views of conjugates are conjugated again": (
        ("x = z.clone().hsplit(1)[0]", "y = x.mH", "y[torch.tensor(0)] = 0.5", "w = y[0]"),
        ("x = z * 1", "y = x[:1].conj()", "x.mul_(2)", "see(y.grad_fn, y.grad_fn.name())"),
        ("with torch.no_grad(), torch.inference_mode(): x = z.adjoint()",
         "y = x.conj().split([1, 1])[1].as_strided((2,), (1,))"),
    ),
    "views as complex numbers": (
        ("x = torch.view_as_complex(b.transpose(0, -1))",),
        ("x = torch.view_as_complex(torch.ones(2, 4)[:, 1:3])",
         "y = torch.view_as_complex(torch.ones(3, 3)[:, :2])",
         "w = torch.view_as_complex(torch.ones(3, 1).expand(3, 2))",
         "v = torch.view_as_complex(torch.ones(3, 4)[:, :2])"),
    ),
    "real inputs of complex results": (
        ("x = c.sum(dtype=torch.complex128)", "x.backward(torch.ones_like(x))"),
        ("x = torch.where(a > 0, d, d * 1j)", "x.backward(torch.ones_like(x))"),
        ("x = c.mean(0, dtype=torch.complex128)",
         "see(*torch.autograd.grad(x, c, torch.ones_like(x), create_graph=True))"),
        ("x = c.prod(dtype=torch.complex128)", "x.backward(torch.ones_like(x))"),
        ("x = c.nansum(dtype=torch.complex128)", "y = c.norm(dtype=torch.complex64)",
         "w = torch.linalg.vector_norm(c, dtype=torch.complex128)",
         "v = torch.linalg.matrix_norm(z, dtype=torch.float64)"),
        ("class Real(torch.autograd.Function):\n"
         "    @staticmethod\n"
         "    def forward(ctx, x): return x * 2\n"
         "    @staticmethod\n"
         "    def backward(ctx, g): return g.real.to(torch.float32)",
         "Real.apply(z).sum().backward(torch.tensor(1j))"),
    ),
    "`out=`: what autograd cannot record is refused first": (
        ("x = Through.apply(Same.apply(d))", "d.tril_()",
         "torch.where(a > 0, x, a, out=torch.zeros(2, 3))", "torch.add(x, a, out=a)"),
        ("torch.argmax(a, out=torch.zeros(()))",),
    ),
    "diagonals are filled through strides": (
        ("x, y = d.split_with_sizes([1, 2], -1)", "x.fill_diagonal_(1)"),
        ("d.fill_diagonal_(1)", "d.sum().backward()", "x = torch.zeros(7, 2); x.fill_diagonal_(1)",
         "y = torch.zeros(9, 2); y[1:].fill_diagonal_(1, wrap=True)", "b.fill_diagonal_(0)",
         "w = torch.zeros(3, 3, 3).transpose(0, 1).fill_diagonal_(2)",
         "v = a.t().fill_diagonal_(2)"),
        ("x = torch.zeros(3, 2, 3).fill_diagonal_(1)", "y = c.fill_diagonal_(1)"),
    ),
    "notes of nodes that the trace let go of": (
        ("x, y = torch.std_mean(z, 0)", "x.sum().backward()",
         "if x.sum() > 0.0123: see(x.grad_fn.metadata)"),
    ),
    "a view in place of what counts its own writes": (
        ("x = z.unfold(-1, 2, 1)", "y = z.data.narrow(0, 0, 1)", "y.transpose_(0, -1)"),
        ("x = d[:1]", "d.data.t_()", "y = d.detach(); y.t_()"),
    ),
    "a view that retains its gradient and is written to": (
        ("x = d.t()[..., 1:]", "y = x.squeeze()", "y.retain_grad()", "y.fill_(y.sum())",
         "x.sum().backward()", "see(y.grad)", "(y * 2).sum().backward()", "see(y.grad)"),
        ("x = d[:1]", "x.retain_grad()", "x.mul_(2)", "d.sum().backward()"),
        ("x = d[:1]", "x.retain_grad()", "x.mul_(2)", "w = x * 3", "w.sum().backward()"),
    ),
    "memory seen as another dtype is of the mode that it is seen in": (
        ("with torch.inference_mode(): x = c.floor()", "y = x.view(torch.float32)",
         "w = x.view(torch.int64)", "w.add_(1)", "see(y, w, x)",
         "with torch.inference_mode(): x.add_(1)", "v = w * 1"),
        ("with torch.inference_mode(): x = a.view(torch.int64)", "x.is_inference()",
         "with torch.inference_mode(): x.add_(0)", "x.add_(0)", "see(a._version)"),
    ),
    "writes to views of unknown history are counted": (
        ("x = Through.apply(c.expand_as(d).rsqrt())",
         "for _ in range(3): torch.autograd.graph.increment_version(x); see(x._version)",
         "y = x * 2"),
        ("x, y = d.unbind(0)", "torch.autograd.graph.increment_version((x, d, y))",
         "see(x._version)",
         "with torch.no_grad(): w = d[:1]", "torch.autograd.graph.increment_version((w, w))",
         "with torch.no_grad(): v = w * 2", "u = w * 2"),
    ),
    "gradients that are zeros depend on nothing": tuple(
        (f"d.{name}", "(d * d.conj()).sum().real.backward(create_graph=True)")
        for name in ("round_()", "floor_()", "sign_()", "sgn_()", "eq_(c)", "copy_(c.detach())")
    ) + (
        ("x = d.trunc() * c.round()", "y = z.sgn().angle() * z.real.angle()",
         "(x.sum() + y.sum()).backward(create_graph=True)"),
        ("d.copy_(c)", "(d * d).sum().backward(create_graph=True)"),
    ),
    "slices that leave nothing out": (
        ("x = b[:2]", "y = b[:2, :]", "w = b[..., :3]", "v = b[None, 0:2]", "u = b[::1]",
         "t = b[:9, 0]", "s = b[-2:, :]", "r = b[:2, [0, 1]]"),
        ("d[:2] = 5.0",), ("d[..., 0:3] = c", "d.sum().backward()"), ("d[:2, :9] = d * 2",),
        ("d[:, 0:3] *= 2", "d.sum().backward()"), ("d[-2:] = 5.0",), ("d[None, :2] = 5.0",),
    ),
    "batches of nothing": (
        ("x = b[:0]", "y = F.batch_norm(x, None, None, training=True)",
         "w = F.batch_norm(x, None, None, c, c, training=True)", "w.sum().backward()",
         "v = F.batch_norm(x, torch.zeros(3).double(), torch.ones(3).double(), None, c)"),
        ("torch.native_batch_norm(b[:0], None, None, None, None, True, 0.1, 1e-5)",),
    ),
    "names of hooks on several tensors": (
        ("x = some(b, d)", "y = copy.copy(d)"), ("x = every(b, d)", "y = copy.copy(d)"),
    ),
    "inference tensors among themselves do not ask autograd": (
        ("with torch.inference_mode(): x = torch.tensor([1.5, -0.5], requires_grad=True)",
         "x.copy_(x)", "x.add_(x)", "x.fill_(2)", "x.zero_()", "x.mul_(2)", "x.copy_(c[:2])"),
        ("with torch.inference_mode(): x = c * 2", "x.fill_(z.sum())", "x.copy_(z[0, 0])"),
    ),
    "strides of what begins at a place that a tensor says": (
        ("x = z.narrow(0, torch.tensor(1), 1)", "y = x.as_strided((2,), (1,))",
         "w = x.as_strided((2, 2), (2, 1), 0)"),
    ),
    "where a tensor is": (
        ("see(d.is_set_to(d), d.is_set_to(d[:]), d.is_set_to(d[0]), d.is_set_to(d.detach()))",),
    ),
    "`set_` looks at the dtype first, unless it is told which part of the memory": (
        ("b.set_(torch.tensor(1))", "b[0].set_(torch.tensor(1))",
         "b.set_(torch.tensor([1, 2]), 0, (1,), (1,))",
         "b.set_(torch.tensor(1.0).untyped_storage())"),
        ("a.set_(torch.tensor([1, 2]), 1, (1,))", "x = torch.tensor(1.0).double()",
         "x.set_(torch.ones(3).untyped_storage())"),
    ),
    "as_strided of memory that is seen as another dtype": (
        ("y = torch.ones(6).view(3, 2)", "x = torch.view_as_complex(y).as_strided((2,), (2,))",
         "x.mul_(2)"),
        ("y = torch.ones(5)", "x = torch.view_as_complex(y[:4].view(2, 2))",
         "x.as_strided((2,), (1,)).mul_(2)", "w = y[:4].view(torch.int64)[1:]",
         "w.as_strided((1,), (1,), 0).add_(1)"),
        ("x = torch.view_as_complex(d.view(-1)[:4].view(2, 2)).as_strided((2,), (1,))",
         "x.mul_(2)", "d.sum().backward()"),
    ),
    "as_strided of a view whose base is a part of the memory": (
        ("p = a[1:].data", "x = p[:, 1:].as_strided((2,), (1,), 3)", "x.add_(10)",
         "see(x._base is p, x.storage_offset())"),
        ("p = b[1:].detach()", "p.mul_(c)", "y = p[:, 1:]", "x = y.as_strided((2,), (1,), 3)",
         "x.mul_(c[1:])", "p.sum().backward()"),
    ),
    "whether a view requires grad is asked of its base": (
        ("p = d.detach()[0]", "p.requires_grad_()", "with torch.no_grad(): x = p[1:]",
         "see(x.requires_grad)", "x.zero_()"),
    ),
    "nodes without a formula refuse where the walk ends, too": (
        ("x = d // 2", "x.sum().backward(inputs=[x])"),
        ("x = d // 2", "see.gradients(*torch.autograd.grad(x.sum(), x))"),
    ),
    "clamp names the target as C++ does": (
        ("x = a > 0", "x.clamp_min_(0)", "x.clamp_max_(0.5)", "x.clamp_(0)"),
        ("x = torch.tensor([1, 2])", "x.clamp_(0.5)", "x.clamp_min_(torch.tensor(0.5))"),
    ),
    "hooks on several tensors, with a leaf in autograd.grad": (
        ("x = every(b, c)", "see(torch.autograd.grad((c ** 2).sum(), [b, c], allow_unused=True))"),
        ("x = every(b, d)", "see(torch.autograd.grad((d ** 2).sum(), [d]))",
         "(d ** 2).sum().backward(inputs=[b])"),
    ),
    "func.grad of complex functions": (
        ("x = torch.func.grad(lambda t: (t * t).sum())(z)",),
        ("x = torch.func.grad_and_value(lambda t: (t * t.conj()).sum().real)(z)[0].detach()",
         "y = x.clone()"),
    ),
    "masks and what is written there": (
        ("a[torch.tensor([True, False, True])] = a",
         "a[0:1, torch.tensor([True, False])] = a",
         "b[0:1, torch.tensor([True, False])] = 1.0",
         "a.index_put_((torch.tensor([[True, False, True]]),), a)"),
        ("a[a > 0] = a[0, 0]", "a.index_put_((a > 0,), a[0, 0], accumulate=True)"),
        ("a[a > 0] = torch.tensor(1)", "a.index_put_((a > 0,), torch.tensor([2]))",
         "w = torch.tensor(3.0, requires_grad=True)", "d[d > 0] = w", "d.sum().backward()"),
        ("a.index_put_((torch.tensor([True, False]).byte(),), c[0])",
         "d.index_put_((torch.tensor([True, False, True]),), c)"),
        ("n = torch.tensor([1, 2, 3])", "n[n > 1] = torch.tensor(0.5)"),
    ),
    "`.data = ` what a tensor is already": (
        ("x = d.split([1, 1])[1]", "d.data = d", "d.mul_(2)", "see(x.grad_fn)"),
        ("x = b.view(-1)", "b.data = b.detach()", "with torch.no_grad(): x.mul_(2)"),
    ),
    "matrices and positions that lie column by column": (
        ("x = torch.linalg.cholesky(d @ d.mT + torch.eye(2).double())", "x.add_(1)",
         "y = x.view(-1)"),
        ("x = z.nonzero()", "y = x.detach().view(-1)"),
        ("x = torch.zeros_like(a.t())", "y = x.view(-1)"),
    ),
    "complex in place where the formula is for real numbers": (
        ("x = z * 2", "x.nan_to_num_()", "x.sum().abs().backward()"),
        ("x = z * 2", "F.silu(x, inplace=True)"),
    ),
    "checkpoints where saved-tensor hooks are disabled": (
        ("with torch.autograd.graph.disable_saved_tensors_hooks('no'): "
         "x = again_in(False, again, a)",
         "with torch.autograd.graph.disable_saved_tensors_hooks('no'): "
         "y = again_in(True, again, c)"),
    ),
    "nodes without a formula keep nothing, and lead to what requires grad": (
        ("x = d // 2", "see(saved(x.grad_fn))", "y = a.floor_divide(d)", "see(y.grad_fn)"),
        ("x = torch.remainder(2, d)", "see(x.grad_fn, saved(x.grad_fn))", "d.mul_(2)",
         "x.sum().backward()"),
        ("x = d.remainder(2)", "see(x.grad_fn, saved(x.grad_fn))"),
    ),
    "gradients that masks make of what was saved need no gradient": (
        *(
            (f"see(torch.autograd.grad((d{op}).sum(), d, create_graph=True)[0].requires_grad)",)
            for op in (".amin()", ".amax(0)", ".max()", ".median()", ".nansum()", ".clamp(0, 1)",
                       ".clamp(a)", ".nan_to_num()", ".aminmax()[1]", ".cummax(0)[0]")
        ),
        *(
            (f"see(torch.autograd.grad(torch.{name}(d, 0)[{k}].sum(), d, create_graph=True)"
             "[0].requires_grad)",)
            for name in ("std_mean", "var_mean") for k in (0, 1)
        ),
        ("y = d.floor() + d.sgn()",
         "see(torch.autograd.grad((y * y).sum(), d, create_graph=True)[0].requires_grad)",
         "y = z.sgn()",
         "see(torch.autograd.grad((y * y).sum().abs(), z, create_graph=True)[0].requires_grad)"),
    ),
    "what norms refuse, in PyTorch's order": (
        ("n = torch.arange(3)", "torch.linalg.matrix_norm(n)", "torch.linalg.matrix_norm(n, 5)"),
        ("torch.linalg.matrix_norm(a, dtype=torch.float32)", "torch.linalg.vector_norm(a, "
         "dtype=torch.float32)", "torch.linalg.matrix_norm(a.half(), 2)"),
    ),
    "saved views tell their new history, though nobody holds them": (
        ("s = d[0] * d[1]", "d.mul_(2)", "s.sum().backward()"),
        ("s = b.view(-1).square()", "with torch.no_grad(): b.mul_(2)", "s.sum().backward()"),
        ("s = z.clone()", "y = s.real.square()", "s.mul_(2)", "y.sum().backward()"),
        ("s = d.expand_as(d).square()", "d.mul_(2)", "s.sum().backward()"),
        ("s = d.unbind(0)[0] * d.unbind(0)[1]", "d.mul_(2)", "s.sum().backward()"),
        ("d[0].mul_(d[1])", "d.sum().backward()"),
        ("w = d[1]", "d[0].mul_(w)", "d.sum().backward()"),
        ("with torch.no_grad(): x = d[0]", "s = x * d", "d.mul_(2)", "s.sum().backward()"),
    ),
    "results saved by writes through views are the views'": (
        ("d[0].sigmoid_()", "d.mul_(2)", "d.sum().backward()"),
        ("x = d[0]", "x.tanh_()", "with torch.no_grad(): d.mul_(2)", "d.sum().backward()"),
    ),
    "tensors are saved, and looked at, in the order of names": (
        ("s = d[:1] * d", "d.mul_(2)", "s.sum().backward()"),
        ("s = d.lerp(d[:1], d[:, :1])", "d.mul_(2)", "s.sum().backward()"),
        ("def pack(t):\n    see(tuple(t.shape))\n    return t",
         "with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t): "
         "x = (d[:1] / d).clamp(d[:1], d[:, :1]), d[:1].hypot(d), d[:, :2].mm(d)"),
    ),
    "saved-tensor hooks see no numbers": (
        ("def doubled(n):\n"
         "    cut()\n"
         "    x = torch.tensor([0.5, -1.0], requires_grad=True)\n"
         "    with hooks(): y = (x ** n).clamp(max=n) * n\n"
         "    see(torch.autograd.grad(y.sum(), x))",
         "for n in (2, 3, 4): doubled(n)"),
    ),
    "as_strided of a view that begins where a tensor says": (
        ("x = z.narrow(0, torch.tensor(1), 1)", "y = x.as_strided((2,), (1,))",
         "w = x.as_strided((2,), (1,), 1)", "v = x.as_strided((2,), (1,))"),
    ),
    "inference tensors are refused before shapes": (
        ("with torch.inference_mode(): x = c.clone()", "torch.mm(x, c.t())", "c.mul(x[:2])",
         "torch.add(x[:2], c)", "c / x[:2]", "torch.bmm(x, c)", "torch.lerp(x[:2], c, 0.5)",
         "c.mul_(x[:2])"),
    ),
    "writes through views are given arguments in every way": (
        ("x = d.t()", "x.clamp_(max=c[:1])", "x.clamp_(c[:1])", "x.add_(1, alpha=2)"),
        ("x, i = d.permute(1, 0), torch.zeros(1, 2, dtype=torch.int64)", "x.scatter_(0, i, 0.5)",
         "x.scatter_(0, i, value=2)", "x.scatter_(0, i, 2, reduce='add')", "x.scatter_(0, i, 'x')",
         "x.scatter_(0, i)", "x.scatter_(0, i, 0.5, value=2)", "x.scatter(0, i, 'x')",
         "x.fill_diagonal_('x')"),
    ),
    "the history of a view is asked for before it is sliced": (
        ("x, y = c.unbind(-1)[:2]", "c.detach()[:1].add_(c.sum())", "x[::2] = y", "x[::2]", "x[0]",
         "with torch.no_grad(): x[::2]"),
    ),
    "a view without a known history that is written to keeps its maker's name": (
        ("x, y = d.split(1)[:2]", "with torch.no_grad(): y[:] += b[:1]", "y.sum()"),
        ("x, y = d.split(1)[:2]", "cut()", "with torch.inference_mode(): y[:] += b[:1]", "y.sum()"),
    ),
    "comparisons cast what they find from complex numbers": (
        ("d.eq_(z)", "d[:, :2].ne_(z)", "a[:, :2].clone().logical_xor_(z)",
         "torch.eq(a[:, :2], z.detach(), out=torch.empty(2, 2))", "a.ne_(1j)", "a[:0].eq_(1j)",
         "a[:, :2].bool().eq_(z)", "torch.isposinf(a, out=torch.empty(2, 3))"),
    ),
    "a node that has nothing to pass on looks at what it saved": (
        ("x = c.tanh()", "y = x.cumprod(0)", "w = x * x", "x.add_(1)",
         "y.sum().backward(inputs=[y])", "cut()", "w.sum().backward(inputs=[w])"),
    ),
    "views that reach out of their base": (
        ("x = a.view(3, 2)", "a.resize_(2)", "a.requires_grad_()", "y = a * 1",
         "(x * 2).sum().backward()"),
        ("w = d.detach()[1]", "w.requires_grad_()", "x = w.as_strided((2, 2), (2, 1), 0)",
         "see(x._is_view(), x._base is w)", "(x * x).sum().backward()"),
        ("v = a.detach()[1]", "x = v.as_strided((2, 2), (2, 1), 0)", "x.mul_(c[:2])", "see(v)",
         "(v * v).sum().backward()", "v.mul_(c)", "cut()", "x.sum()"),
    ),
    "memory that grows does so for all that share it": (
        ("x = a[0]", "y = a[1].detach()", "x.resize_(8)", "x[6:] = 2", "see(x[:6], x._base is a)",
         "x.add_(1)", "cut()", "a.mul_(2)", "see(x[:6], a.untyped_storage().nbytes())"),
        ("x = a.t() * 1", "y = x[1:]", "x.resize_(9)", "see(x[:6], y.stride())", "y.mul_(2)",
         "see(x[:6])", "del x"),
        ("x = torch.tensor([[1 + 1j], [0.5]])", "y = x.narrow(0, torch.tensor(0), 1)",
         "torch.sum(a, 0, out=y)"),
        ("x = z.as_strided((2,), (1,))", "with torch.no_grad(): torch.mul(b, d, out=x)"),
    ),
    "`out=` tensors of another type": (
        tuple(f"torch.{call}, out=torch.empty(2))" for call in (
            "eq(a, a", "mul(a, a", "sum(a, 0", "all(a, 0", "any(a, 0", "signbit(a", "outer(c, a[0]",
            "addmm(a[:, :2], a, a.t()", "outer(a[0], a[0]", "nan_to_num(a", "logsumexp(a, 0",
            "linalg.vector_norm(a", "scatter(a, 0, torch.zeros(1, 3, dtype=torch.int64), a",
            "renorm(a, 2, 0, 1",
        )),
    ),
    "what an in-place op overwrites is saved as a copy": (
        ("d.pow_(2)", "see(saved(d.grad_fn))", "see(d.grad_fn._saved_self.grad_fn)", "a.mul_(b)",
         "see(saved(a.grad_fn))"),
    ),
    "what a mask does not choose is multiplied by 0": (
        ("x = torch.tensor([float('inf'), float('nan'), -1.0])", "y = x * (x > 3)",
         "m = (x > 3).double()", "y = x * m", "cut()", "y = (x > 3) * x * (x > 4).float()"),
    ),
    "no element is no degree of freedom": (
        ("x = b[:0].std(-1)", "y = b[:0].var(0, correction=0)", "y = torch.std_mean(b[:0], 1)"),
    ),
    "views made in inference mode stay so": (
        tuple(f"with torch.{first}(): x = b[0]\nwith torch.{then}(): y = x.split(1)[0]\ny.mul_(2)"
              for first in ("inference_mode", "no_grad")
              for then in ("inference_mode", "no_grad", "enable_grad")),
        tuple(f"with torch.{first}(): x = b[0]\nwith torch.{then}(): y = x[1:]\ny.mul_(2)"
              for first in ("inference_mode", "no_grad")
              for then in ("inference_mode", "no_grad", "enable_grad")),
    ),
    "gradients read the indices that hooks give back": (
        *((f"with hooks(): x = {call}", "x.sum().backward()") for call in (
            "d.sort(0)[0]", "d.max(0)[0]", "d.cummax(1)[0]", "d.take(torch.tensor([1]))",
            "d.scatter_add(0, torch.tensor([[0, 1, 0], [1, 1, 1]]), b)",
            "d.index_add(0, torch.tensor([1]), b[:1])", "d.index_copy(0, torch.tensor([1]), b[:1])",
            "d.put(torch.tensor([1]), c[:1])", "F.nll_loss(d, torch.tensor([0, 2]))",
            "F.embedding(torch.tensor([0, 1]), d)", "d.masked_fill(a > 0, 1)",
            "torch.where(a > 0, d, b)", "d.masked_scatter(a > 0, b)",
        )),
        *(("def whole(): return torch.autograd.graph.saved_tensors_hooks(\n"
           "    lambda t: t, lambda t: t.int())",
           f"with whole(): x = {call}", "x.sum().backward()") for call in (
            "d.gather(0, torch.tensor([[0, 1, 0]]))", "d.index_fill(0, torch.tensor([1]), 0)",
            "d.masked_fill(a > 0, 1)",
        )),
    ),
    "what is scattered has no more elements than its index if it is differentiated": (
        ("x = d.scatter(0, torch.tensor([[0, 1, 0]]), b)", "x.sum().backward()"),
        ("x = a.scatter_add(0, torch.tensor([[0, 1, 0]]), b)", "x.sum().backward()"),
        ("x = d.scatter_reduce(0, torch.tensor([[0, 1, 0]]), a, 'sum')", "x.sum().backward()"),
        ("x = d.scatter_reduce(0, torch.tensor([[0, 1, 0]]), b, 'mean')", "x.sum().backward()"),
        ("x = d.scatter(0, torch.tensor([[0, 1, 0]]), b)",
         "torch.autograd.grad(x.sum(), b, create_graph=True)"),
    ),
    "views that are gone, whose base was written to": (
        ("x = Through.apply(d)", "y = x.sin()", "del x", "d.mul_(2)", "see(saved(y.grad_fn))",
         "y.sum().backward()"),
        ("w = Part.apply(d).sin()", "cut()", "with torch.no_grad(): d.mul_(2)",
         "w.sum().backward()"),
        ("x, y = TwoParts.apply(d)", "w = x * y", "del x, y", "d.mul_(2)", "w.sum().backward()"),
        ("x = d.chunk(2)[0].view(-1)", "w = x * x", "del x", "d.mul_(2)", "w.sum().backward()"),
        ("with torch.inference_mode(): x = d[:1]", "y = x * c", "del x", "cut()", "d.mul_(2)",
         "y.sum().backward()"),
        ("with torch.no_grad(): x = d[:1]", "y = x * c", "del x", "d.mul_(2)",
         "y.sum().backward()"),
    ),
    "what nodes saved": (
        ("x = b.square()", "see(saved(x.grad_fn))", "d.square_()", "see(saved(d.grad_fn))", "cut()",
         "see(saved(x.grad_fn), saved(d.grad_fn))"),
        ("x = torch.ones(2)", "x.mul_(c[:2])", "see(saved(x.grad_fn))"),
    ),
    "a Function's write counts twice": (
        ("x = c.log_softmax(0)", "y = x.sin()", "Dirty.apply(x)", "y.sum().backward()",
         "x.sum().backward()"),
    ),
    "no gradients reach views from without grad mode": (
        ("with torch.inference_mode(): x = b[1:]", "with torch.no_grad(): y = d[1:]", "edge(x)",
         "every(b, y)", "some(x)", "torch.autograd.grad(b.sum(), x, allow_unused=True)"),
    ),
    "nothing is dropped of no complex numbers": (
        ("d[2:] = z[:0, :1]", "x = z[:0].double()", "y = z[:0].float()", "d[2:].fill_(z[0, 0])",
         "d[2:] = z[0, 0]"),
    ),
    "group norms of what does not lie row by row are of a copy": (
        ("x = F.group_norm(b.chunk(2, -1)[0][None], 1)", "x.sum().backward()",
         "y = F.group_norm(torch.ones(2, 3, 4, 4).double().permute(0, 3, 1, 2) * c.sum(), 2)",
         "see(y.grad_fn)", "w = torch.group_norm(b.t()[None], 3)"),
    ),
    "unsafe splits share memory while a level is open, tangents too": (
        ("with fw.dual_level(): x, y = a.unsafe_chunk(2, -1)", "x[..., 0] *= 2"),
        ("with fw.dual_level():\n    t = fw.make_dual(a, a * 3)\n    x, y = t.unsafe_split(1)\n"
         "    x.mul_(2)\n    see(fw.unpack_dual(x), fw.unpack_dual(t))",),
    ),
    "what `.data` changed of operands and of results that were saved": (
        ("x = b.prod()", "with keeping(): b.data = b.data * 2", "x.backward()", "y = d.norm()",
         "w = d.prod(0)", "cut()", "d.data = d.data * 2", "(y * w).sum().backward()"),
        ("x = z.prod() * z.norm()", "z.data = z * 2", "x.backward()",
         "x = d.std(-1) * d.logsumexp(1) * d.amax(1)", "y = d.norm(3) + d.norm(float('inf'))",
         "d.data = d.detach() * a.sign()", "(x.sum() * y).backward()"),
        ("x = d.norm(); y = d.expm1() + d.exp2() + d.softmax(0); w = b.tanh()",
         "x.data = x * 2; y.data = y * 2; w.data = w * 2", "(x * y * w).sum().backward()"),
        ("x = d.max() + d.softmax(0) + 2 ** d + d.hypot(a)", "cut()", "d.data = d.detach().clone()",
         "x.sum().backward()"),
        ("with keeping(): x = d.norm(3) * d.std(False) * (d - 1).prod(0) * d.prod() + d.min()",
         "x.sum().backward()",
         "with keeping(): y = z.prod(1).abs() + d.norm(1.5, 0)[:2] + d.norm(0.5) + d.tan().sum()",
         "y.sum().backward()", "b.norm(dtype=torch.complex128).abs().backward()"),
    ),
    "what was transposed in no_grad has its history in the old shape": (
        ("with torch.no_grad(): d.t_()", "x = d.sum()", "x.backward(retain_graph=True)",
         "x.backward(retain_graph=True, create_graph=True)", "y = d.unbind(0)[0]", "cut()",
         "y.sum().backward()", "with keeping(): w = d * a.t()", "w.sum().backward()"),
    ),
    "hooks behind accumulation return nothing": (
        ("b.register_post_accumulate_grad_hook(lambda p: p.detach().sub_(p.grad * 0.1))",
         "d.sum().backward(retain_graph=True)",
         "b.register_post_accumulate_grad_hook(lambda p: see(1))", "d.sum().backward()",
         "c.register_post_accumulate_grad_hook(lambda p: p)", "c.sum().backward()",
         "c.register_post_accumulate_grad_hook(lambda p: p.sum())", "c.sum().backward()"),
    ),
    "complex bounds": (
        ("x = z[:, :1].detach()", "a.clamp_(x)", "a.clamp_max_(x)", "a.clamp_(x, x)", "a.clamp(x)",
         "a.clamp(a, x)", "a.clamp(max=x)", "a.clamp_(x[0, 0])", "x.clone().clamp_(x, x)"),
    ),
    "clipping in inference mode": (
        ("(c * b).sum().backward()", "with torch.inference_mode(): "
         "x = torch.nn.utils.clip_grad_norm_([b, c], 1.0); "
         "torch.nn.utils.clip_grad_value_([b, c], 0.1)", "c.grad.mul_(2)", "x * c"),
    ),
    "gradients of gradients by PyTorch's formulas": tuple(
        (f"x = {op}", "g = torch.autograd.grad(x.sum(), b, torch.tensor(1.5).double()."
         "requires_grad_(), create_graph=True)[0]", "see(g.grad_fn, g.stride(), g.detach())",
         "see.gradients(*torch.autograd.grad((g * g).sum(), b))")
        for op in ("torch.addcmul(d, b, c)", "torch.addcdiv(d, b, c, value=2)",
                   "a.fmod(d) + a.remainder(b)", "d.frac()", "a.xlogy(d) + d.xlogy(a + 3)",
                   "torch.linalg.cross(d, c.expand(2, 3)) + torch.linalg.cross(a, b)")
    ),
    "gradients that are ops of the input, too": (
        *((f"x = {op}", "g = torch.autograd.grad(x.sum(), b, create_graph=True)[0]",
           "see(x.grad_fn, g.requires_grad, g.stride())")
          for op in ("F.pad(b, (1, 1), mode='reflect')", "F.avg_pool2d(b[None], 2)",
                     "F.pad(b[None], (1, 1, 1, 0), mode='replicate')", "b.xlogy(a)")),
    ),
    "arguments are looked at before memory": (
        ("x = (a - a).expand(2, 2, 3)", "x.addmm_(x.clone(), a.clone())"),
        ("x = a[0].expand(2, 3)", "x.addmm_(a, a)"), ("x = a[0].expand(2, 3)", "x.addr_(c, c)"),
        ("x = a[0].expand(2, 3)", "x.cumsum_(5)"), ("x = a[0].expand(2, 3)", "x.normal_(0, -1)"),
        ("x = a[0].expand(2, 3)", "x.index_add_(5, torch.tensor([0]), a[:1])"),
        ("x = a[0].expand(2, 3)", "x.add_(torch.ones(5))"), ("d[:0].expand(2, 0, 3).add_(1)",),
    ),
    "in-place products have the shape they write to": (
        ("a[0].addmm_(d, d.t())",), ("a[:1].addmm_(d @ d.t(), d)",), ("a[0, :1].addmv_(d, c)",),
        ("a[None, :1].baddbmm_((d @ d.t())[None], d[None])",), ("a.addr_(c, c)",),
        ("a[0].addr_(c, c)",), ("a[:1].addr_(c, c)",),
    ),
    "probabilities": (
        ("a.bernoulli_(torch.ones(5))",), ("c.detach().bernoulli_(a.abs())",),
        ("see((a * a.bernoulli_(torch.zeros(3)) * -1).signbit())",),
    ),
    "zeros of the identity": (("see((torch.eye(3) * -1).signbit())",),),
    "batched gradients call hooks once": (
        ("x = b * 2", "x.register_hook(lambda g: (see(g.shape), g * 2)[1])",
         "x.register_hook(lambda g: g + 1)",
         "see.gradients(*torch.autograd.grad(x.sin(), b, torch.ones(2, 2, 3, dtype=b.dtype),"
         " is_grads_batched=True))"),
        ("x = once(b)",
         "see.gradients(*torch.autograd.grad(b, b, torch.ones(2, 2, 3, dtype=b.dtype),"
         " is_grads_batched=True))"),
    ),
    "views whose history is gone, as integers": (
        ("x, y = a.chunk(2, -1)", "a.mul_(b)", "see(y.bool(), y.int(), torch.isin(y, y))", "y * 2"),
    ),
    "nodes that wrote through a view save nothing": (
        ("x = d.clone()", "x[:1].view(-1).add_(1)", "see(saved(x.grad_fn))",
         "see([n for n in dir(x.grad_fn) if 'saved' in n])",
         "see(sorted(n for n in dir((d * b).grad_fn) if 'saved' in n))",
         "x = torch.nn.functional.interpolate(b[None], scale_factor=2.0, mode='linear')",
         "see(sorted(n for n in dir(x.grad_fn) if 'saved' in n))"),
    ),
    "who wrote to what was packed": (
        ("x = a.dist(b)", "a.mul_(x)", "y = a.detach()",
         "with torch.autograd.graph.save_on_cpu(): z = (a * a).sum()",
         "torch.autograd.grad(x, b, create_graph=True)"),
    ),
    "what is resized in inference mode": (
        ("with torch.inference_mode(): x = torch.ones(2, requires_grad=True)",
         "x.resize_as_(torch.ones(1))"),
        ("with torch.inference_mode(): x = torch.cat([c, c], out=a)", "see(a.is_inference())"),
        ("with torch.inference_mode(): c.resize_(2)", "see(c.is_inference(), c._version)"),
    ),
    "what std_mean saved, after a write that nobody counted": (
        ("x, y = torch.std_mean(b, 0)", "b.data.sub_(a * 0.1), (b * b).sum().backward()",
         "torch.autograd.backward(edge(x), torch.ones_like(x))"),
    ),
    "tangents of inference tensors": (
        ("with torch.inference_mode(): x = a.clone(); y = x[:1]",
         "see(dual(lambda t: t * 2, y)); dual(lambda t: (t * t).sum(), y).detach()"),
    ),
    "the result that a gradient of a gradient goes through": tuple(
        (f"x = {what}", "see.gradients(*torch.autograd.grad(torch.autograd.grad((x * x).sum(), b, "
         "create_graph=True)[0].sum(), [b, x], allow_unused=True))")
        for what in ("d.dist(c)", "d.norm()", "d.norm(3, 1)", "torch.linalg.norm(d)", "d.std(0)",
                     "torch.std_mean(d)[0]", "d.logsumexp(1)", "torch.hypot(d, c)")
    ),
    "an error of shapes before one of views": (
        ("x = b[..., -1:]", "y = x.unbind(0)[0]", "Dirty.apply(x[:1])", "y.mH"),
    ),
    "indices of what has no elements": (
        ("x = b.unflatten(-1, (1, -1))[None, torch.tensor([0])]",
         "see(x[1:, torch.tensor([0, 1])])", "x[1:, torch.tensor([0, 1])] = 2.0"),
    ),
    "sums into out= of integers": (
        ("x = torch.arange(3)", "see(torch.sum(a, 0, out=x), torch.prod(a, 0, out=x))",
         "see(torch.cumsum(a[0], 0, out=x), torch.cumprod(a[0], 0, out=x))",
         "torch.mean(a, 0, out=torch.arange(3))"),
    ),
    "detach_ of an inference tensor": (
        ("with torch.inference_mode(): x = torch.ones(2, requires_grad=True)",
         "see(x.detach_().requires_grad)"),
    ),
    "leaves whose node is looked for in inference mode": (
        ("with torch.inference_mode(): every(d, b)",),
        ("with torch.inference_mode(): edge(b)",),
    ),
    "inference tensors that functions save": (
        ("with torch.inference_mode(): x = b * 2", "Needs.apply(x, b, 2)"),
    ),
    "indices as they were said": (
        ("see(saved(b[-1].grad_fn), saved(b[0, -1].grad_fn))",
         *(f"x = b[:, {k}].grad_fn; see(x._saved_start, x._saved_end, x._saved_step)"
           for k in ("1:2", "1:", "-2:", "-30:-1", "1:9", "2:1", "1:3", "::2", "-3::2"))),
        ("x = b.narrow(1, -2, 1).grad_fn", "see(x._saved_start, x._saved_end)"),
    ),
    "the view that was written to has its history at once": (
        ("x = Dirty.apply(d[:1])", "d.detach_()"), ("x = d[:1]", "x.mul_(2)", "d.detach_()"),
        ("x = d[:1]", "y = d[:1]", "x.mul_(2)", "d.detach_()"),
    ),
    "what inference tensors cannot tell": (
        ("with torch.inference_mode(): x = c * 2",
         "with torch.autograd.graph.allow_mutation_on_saved_tensors(): x += 1"),
    ),
    "the gradient of a leaf is not retained once it is a view of a result": (
        ("x, y = a.split_with_sizes([1, 2], -1)", "a.addcmul_(b, b)", "x.retain_grad()"),
        ("x = a[0]", "a.mul_(b)", "x.retain_grad()", "see(x.retains_grad)"),
        ("x = a[0]", "a.mul_(b)", "x.grad_fn", "x.retain_grad()", "see(x.retains_grad)"),
    ),
    "other data, the same history": (("d.data.copy_(d)", "d.data = a"),),
    "what is written to is saved as a copy, by hooks too": (
        ("with torch.autograd.graph.save_on_cpu(): d.sinh_()", "see(saved(d.grad_fn))"),
        ("with keeping(): d.mul_(b)", "see(saved(d.grad_fn))", "d.sum().backward()"),
    ),
    "views that are written to again": (
        ("x = a[0]", "x.mul_(c)", "x.mul_(c)"),
        ("x = a[0]", "for _ in range(3): x[torch.tensor([0])] = c.mean()"),
        ("x = a[0]", "y = a[0]", "x.mul_(c)", "y.mul_(c)"),
        ("x = a[0]", "x.mul_(c)", "a.mul_(2)", "x.mul_(c)"),
        ("x = a[0]", "x.mul_(c)", "Dirty.apply(x)", "Dirty.apply(x)", "x.sum().backward()"),
        ("x = a[0]", "y = a[0]", "x.mul_(c)", "Dirty.apply(y)"),
        ("with torch.no_grad(): x, y = TwoParts.apply(z)", "y.tolist()", "DirtyPair.apply(y, y)"),
    ),
    "data that was set after the last op": (
        ("x = d.log1p()", "d.data = a", "x.sum().backward()"),
        ("x = d.log1p()", "d.data = a", "cut()", "x.sum().backward()"),
        ("x = d.log1p()", "b.data, d.data = d.data, b.data", "cut()", "x.sum().backward()"),
    ),
    "what is saved has the data that was set": (
        ("x = d.renorm(2, 0, 1.0)", "d.data, x.data = x.data, d.data", "see(saved(x.grad_fn))"),
        ("x = d.sin()", "d.data = a", "cut()", "see(saved(x.grad_fn))"),
    ),
    "arguments that are said to be None": (
        ("see(b.sum(None).grad_fn, b.mean(dim=None).grad_fn, b.sum().grad_fn)",
         "see(b.sort(stable=None)[0].grad_fn, b.sort()[0].grad_fn, b.round(decimals=0).grad_fn)"),
    ),
    "numbers without dims": (
        ("with keeping(): x = c[0].log_softmax(-1)", "x.backward()"),
        ("with keeping(): x = c[0].softmax(-1)", "x.backward()"),
    ),
    "nodes tell only what torch's have": (
        ("see(saved(torch.stack([a, d]).grad_fn))", "see(saved(d.square().grad_fn))",
         "see(saved(torch.where(a > 0, d, 1.0).grad_fn))"),
    ),
    "a view whose history nobody can tell: what does not ask for it is allowed": (
        ("x, y = d.chunk(2, -1)", "d.t_()", "y.logical_not_()", "y + 1"),
        ("x, y = d.chunk(2, -1)", "d.mul_(2)", "y.data = y.data * 2", "y + 1", "y.data.mul_(3)",
         "with torch.no_grad(): y.mul_(2)", "see(y._version, d._version, y.shape)", "d.mul_(3)"),
        ("x, y = z", "torch.autograd.graph.increment_version(z)", "y.data = y.data * 2"),
    ),
    "a view whose history nobody can tell is refused before memory is looked at": (
        ("x, y = d.split(1)", "d.index_fill_(0, torch.tensor([0]), 2.0)", "d.data.copy_(x)"),
    ),
    "gradients under hooks that are differentiated again are one node an input": (
        ("with torch.autograd.graph.save_on_cpu(): d.clamp_(c)",
         "g = torch.autograd.grad((d ** 2).sum(), [b, c], create_graph=True)",
         "see([x.output_nr for x in g])", "see.gradients(*g)",
         "(g[0].sum() * g[1].sum()).backward()", "see(b.grad, c.grad)"),
    ),
    "what is filled with a tensor may not repeat its elements": (
        ("x = a[0].expand(2, 3)", "x.fill_(2.0)", "x.fill_(c.sum())"),
        ("x = a[0].expand(2, 3)", "x.fill_(torch.tensor(2.0))", "x[0].fill_(torch.tensor(2.0))"),
    ),
    "an inference tensor is refused before memory that repeats": (
        ("x = d.expand(2, *d.shape)", "with torch.inference_mode(): w = torch.tensor(2.5)",
         "x.add_(w)", "x.mul_(w)"),
        ("x = d.expand(2, *d.shape)", "with torch.inference_mode(): w = torch.ones(4, 7)",
         "x.mul_(w)"),
    ),
    "what hooks hold of the result of a write counts its versions": (
        ("with torch.autograd.graph.save_on_cpu(): d.sigmoid_()", "see(saved(d.grad_fn))",
         "d.detach().zero_()", "see(saved(d.grad_fn))", "d.sum().backward()", "see(b.grad)"),
        (f"{SEEING}: d.exp_()", "d.detach().zero_()", "d.sum().backward()", "see(b.grad)"),
        (f"{SEEING}: d.mul_(d.detach())", "d.sum().backward()", "see(b.grad)"),
    ),
    "hooks see the view that is written to, and the gradient is of its part": (
        *((f"x = {view}", f"{SEEING}: x.{write}", "see(d, x)", "(d * d).sum().backward()",
           "see(b.grad)")
          for view in ("d[0]", "d.t()[1:]", "d.view(-1)[::2]")
          for write in ("sigmoid_()", "relu_()", "sin_()", "mul_(x.detach() + 1)", "pow_(2)")),
        ("x = d[0]", f"{SEEING}: x.tanh_()", "x.detach().zero_()", "d.sum().backward()",
         "see(b.grad)"),
        ("x = d[0]", f"{SEEING}: x.sigmoid_()", f"{SEEING}: d.t()[1].tanh_()",
         "g, = torch.autograd.grad((d * d).sum(), b, create_graph=True)", "see(g)",
         "g.pow(2).sum().backward()", "see(b.grad)"),
        ("x = d[0]", "x.tanh_()", "d.data.mul_(2)", "d.sum().backward()", "see(b.grad)"),
    ),
    "a Function that writes to a view gets its part of an expanded gradient": (
        ("x = d.t()[0]", "Dirty.apply(x)", "d.sum().backward()", "see(b.grad)"),
    ),
    "indices that were saved are read as they are now": (
        *(("x, i = d." + op, write, "x.sum().backward()", "see(b.grad)")
          for op in ("max(0)", "sort(0)", "topk(1, 0)", "cummax(0)", "kthvalue(1, 0)")
          for write in ("i.data.zero_()", "i.data = 1 - i", "i.data = x.detach().clone()")),
        ("i = torch.tensor([1, 0])", "x = d.index_select(1, i)", "i.data = i.double()",
         "x.sum().backward()", "see(b.grad)"),
    ),
    "hooks around vmap, and around what refuses them": (
        (f"{KEEPING}: torch.func.vmap(lambda t: t.exp().sum() * t)(d).pow(2).sum().backward()",
         "see(b.grad)"),
        (f"{KEEPING}: torch.func.vjp(torch.sin, c > 0)",),
        (f"{KEEPING}: torch.func.grad(torch.sin)(c > 0)",),
    ),
    "limits that are tensors have a node of their own": (
        ("x = d.clamp_min(c)", "y = d.clamp_max(torch.tensor(0.5))", "see(saved(x.grad_fn))",
         "w = d.clamp_max(0.5)", "d.clamp_min_(c.sum())"),
    ),
    "as_strided_ of a view counts from where the storage begins": (
        ("x = d.view(-1)[3:]", "x.as_strided_((2, 2), (2, 1), 1)", "x.mul_(2)",
         "(d * d).sum().backward()", "see(b.grad)"),
        ("x = d[1]", "y = x.as_strided_((2,), (2,), 0)", "see(y.storage_offset(), y is x)"),
    ),
    "in-place forms and powers have nodes of their own": (
        ("x = d.float_power(b)", "y = torch.float_power(2, b)", "see(saved(x.grad_fn))",
         "w = d.float_power(2)", "see(saved(y.grad_fn))", "x.add(y).sum().backward()",
         "see(b.grad.clone())"),
        ("d.add_(4).polygamma_(1)", "see(saved(d.grad_fn))", "d.sum().backward()", "see(b.grad)"),
    ),
    "gradients that PyTorch makes of the input are differentiated again, to zeros": (
        *((f"x = {call}", "g, = torch.autograd.grad(x.sum(), b, create_graph=True)",
           "h, = torch.autograd.grad(g.pow(2).sum(), b)")
          for call in ("F.nll_loss(d, torch.tensor([1, 0]))", "F.avg_pool1d(d[None], 2)",
                       "F.adaptive_avg_pool1d(d[None], 2)")),
    ),
    "what inverses and factors saved is seen, and seen to be written to": (
        *(("m = d @ d.t()", f"x = torch.{call}", f"see(x.grad_fn._saved_{name})",
           "with torch.no_grad(): x.mul_(2)", "x.sum().backward()")
          for call, name in (("linalg.inv(m)", "inverse"), ("inverse(m)", "inverse"),
                             ("linalg.cholesky(m)", "L"), ("linalg.eigvalsh(m)", "eigenvalues"),
                             ("linalg.lstsq(m, m)[0]", "solution"))),
        *(("m = (d @ d.t()).triu()" if "r" in call[-5:] else "m = (d @ d.t()).tril()",
           f"x = torch.{call}", "g, = torch.autograd.grad((x * x).sum(), m, create_graph=True)",
           "see(g + 0)", "h, = torch.autograd.grad(g.pow(2).sum(), m)", "see(h + 0)", "del h")
          for call in ("cholesky_inverse(m)", "cholesky_inverse(m, True)", "linalg.inv(m)",
                       "cholesky_solve(d, m)", "cholesky_solve(d, m, True)")),
    ),
    "views in place of .data count for themselves; errors tell the shape that a tensor has": (
        ("x = z.data[0]", "y = z.tensor_split(2)[0]", "x.swapaxes_(0, -1)",
         "(y * y.conj()).sum().real.backward()", "see(x._version, z._version)"),
        *(("x = " + made, *look, write, "x.sum().backward()")
          for made, write in (("torch.mm(a, d.t())", "a.set_(c.detach().clone())"),
                              ("a * d", "a.t_()"), ("d.exp() * d", "d.t_()"))
          for look in ((), ("x.sum().item()",))),
    ),
    "pieces that a node saved are read anew after a write to .data of the whole": tuple(
        (f"x = {piece}", f"y = {op}", *then, "b.data.sub_(0.5)", "y.sum().backward()")
        for piece in ("b.unbind(0)[0]", "b.split(1)[1]", "b.chunk(2, 0)[1].view(3)")
        for op in ("b.addcmul(x, x)", "x.sin()", "x * x")
        for then in ((), ("y.sum().item()",), ("del x", "y.sum().item()"))
    ),
    "a leaf that was written to as no leaf has left the graph of its gradient": tuple(
        ("b.requires_grad_(False)", "b.copy_(c)", *look, back)
        for look in ((), ("b.sum().item()",))
        for back in ("d.sum().backward()", "d.backward(a)", "torch.autograd.grad(d.sum(), b)",
                     "d.sum().backward(inputs=[b])")
    ),
    "pieces that share memory only are filled where they lie": (
        ("x, y = b.unsafe_chunk(2, -1)", "y.fill_diagonal_(1)"),
        ("x, y = d.unsafe_chunk(2, -1)", "y.fill_diagonal_(1)", "(x * y).sum().backward()"),
    ),
    "hooks see the gradient of a root in the root's dtype": tuple(
        ("x = torch.tensor([[1, 2, 3], [4, 0, -1]])", f"{t}.register_hook(lambda g: g.sin())", back)
        for t in "bd"
        for back in (f"{t}.backward(x)", f"torch.autograd.grad({t}, b, x)",
                     f"{t}.backward(x.float(), inputs=[b])")
    ),
    "a tensor counts its own writes, whatever memory it has got": tuple(
        (*write * n, f"x = {new}", f"{t}.data = x", f"y = {t} * {t}", *then, "y.sum().backward()",
         f"see({t}._version, x._version)")
        for t, write in (("b", ("with torch.no_grad(): b.mul_(2)",)), ("d", ("d.mul_(2)",)))
        for n in (0, 2)
        for new in (f"{t}.data * 0.5", "torch.ones(2, 3, dtype=torch.float64).add_(1)")
        for then in ((), ("y.sum().item()",), ("x.add_(1)",), ("y.sum().item()", "x.add_(1)"))
    ),
    "powers and maxima after a look, when their operand was written to through .data": tuple(
        (f"y = {call}", "y.sum().item()", f"b.data.{write}", "y.sum().backward()")
        for call in ("b ** 3", "b.pow(2.0)", "b.max(0)[0]", "b.min(1).values", "b.kthvalue(1)[0]")
        for write in ("sub_(0.1)", "mul_(-1)")
    ) + (
        ("x, y = torch.aminmax(b, dim=0)", "b.data.sub_(0.3)", "y.sum().backward()"),
        ("x, y = torch.aminmax(b)", "y.item()", "b.data.sub_(0.3)", "y.sum().backward()"),
    ),
    "sums of complex numbers into real ones warn once": (
        ("with torch.inference_mode(): torch.sum(z, 0, out=c)",),
        ("with torch.no_grad(): torch.cumsum(z, 0, out=torch.zeros(0, dtype=torch.float64))",),
        ("with torch.no_grad(): torch.abs(z, out=torch.zeros(3))",),
    ),
    "a weight without dims may have a dtype of its own": tuple(
        (f"w = {w}", "y = torch.lerp(d, a, w)", "y.abs().sum().backward()", "see(w.grad)",
         "d.lerp_(a, w)")
        for w in ("torch.tensor(0.5)", "torch.tensor(0.25, requires_grad=True)", "torch.tensor(1)",
                  "torch.tensor([0.5])")
    ),
    "what has no derivative has none under hooks": (
        ("d.add_(5)", f"{KEEPING}: d.acosh_()", "d.sum().backward()"),
        ("d.add_(5)", f"{KEEPING}: d[0].acosh_()", "d.sum().backward()"),
        ("d.add_(5).acosh_()", "d.data.mul_(2)", "d.sum().backward()"),
    ),
    "a view is a leaf until its history is asked for": (
        ("x = a.expand(2, *a.shape)", "a[...] = d", "x.data[0] = 0.5", "x += 1"),
        ("x = a.t()", "a[...] = d", "x.detach()", "x.tolist()", "x += 1"),
        ("x = a.t()", "a[...] = d", "with torch.no_grad(): x + 1", "see(x.output_nr)", "x += 1"),
        ("x = a.t()", "a[...] = d", "with torch.no_grad(): x[0].zero_()", "y = x + 1", "x += 1"),
    ),
    "a leaf that a Function wrote to, refused, counts both writes": [
        ("x = b ** 3", "DirtyPair.apply(a, b)", "see(b._version)", "x.sum().backward()"),
        ("x = b.sin()", "y = b[0]", "DirtyPair.apply(y, b)", "x.sum().backward()"),
    ],
    "a result written through a view, saved, and written to after a cut": [
        ("x = d[:1]", "x.tanh_()", "cut()", "with torch.no_grad(): d.relu_()",
         "torch.autograd.backward(edge(d), torch.ones_like(d))"),
    ],
    "kernels that nothing is computed with refuse nothing": [
        ("F.softmax(z[:0], -1)",), ("see(F.softmax(z.detach()[:0], -1))",),
        ("see(torch.tensor(True).cumsum_(0), torch.zeros(0, 2).bool().cumprod_(0))",),
        ("torch.tensor([True]).cumsum_(0)",),
        ("F.log_softmax(z[:0], 0)",), ("see(torch.log_softmax(torch.zeros(0, 2, dtype=int), 0))",),
    ],
    "a gradient from what hooks unpacked, or `.data` left, depends on what its formula reads": [
        ("x = d @ c", "b.register_hook(lambda g: see('hook'))",
         "x.grad_fn._raw_saved_vec.register_hooks(lambda t: t, lambda t: t)",
         "x.sum().backward(create_graph=True)", "(b.grad * b.grad).sum().backward()"),
        ("x = d * c", "b.register_hook(lambda g: see('hook'))",
         "x.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)",
         "x.sum().backward(create_graph=True)", "(b.grad * b.grad).sum().backward()"),
        ("b.register_hook(lambda g: see('hook'))", "d.data, b.data = b.data, d.data",
         "x = d @ c", "cut()", "x.sum().backward(create_graph=True)",
         "(b.grad * b.grad).sum().backward()"),
    ],
    "unsafe pieces of conjugates and negatives are those of a copy": [
        ("x = z.mH", "y, w = torch.unsafe_split(x, 1)", "w += w.detach()", "see(x, y, w, z)"),
        ("x = (z * 2).conj().imag", "y, w = x.unsafe_chunk(2)", "w += 1", "see(x, y, w)",
         "(y * w).sum().backward()"),
        ("x = (z * 2).conj()", "y, w = x.unsafe_split_with_sizes([1, 1], 1)", "y *= 2",
         "see(x, y, w, y.is_conj())", "(y * w).abs().sum().backward()"),
    ],
    "other memory in inference mode leaves a leaf's end of older graphs where it is": [
        ("with torch.inference_mode(): b.set_(b.detach().clone())",
         "d.sum().backward(inputs=[b], retain_graph=True)", "see(b.grad)"),
        ("with torch.inference_mode(): b.set_(b)", "d.sum().backward(inputs=[b])", "see(b.grad)"),
        ("with torch.no_grad(): b.set_(b)", "d.sum().backward(inputs=[b])", "see(b.grad)"),
    ],
    "an error names who wrote to what was saved, not the tensor that a pack hook holds": [
        (f"{KEEPING}: x = d.exp()", "x.addcmul_(x, x)", "x.sum().backward()"),
        (f"{KEEPING}: x = torch.linalg.norm(d)", "x.mul_(x)", "x.sum().backward()"),
    ],
    "some look at shapes before a view is asked for its history": [
        (*LOST, "y = F.nll_loss(x, torch.tensor([1, 0]))"),
        (*LOST, "y = F.nll_loss(x, torch.tensor([1.0]))"),
        (*LOST, "y = F.max_pool1d(x, 9)"),
        (*LOST, "y = F.pad(x, (1,))"),
        (*LOST, "y = F.interpolate(x, 2)"),
        (*LOST, "y = F.batch_norm(x, None, None)"),
    ],
    "reshape is a view where writes to what was saved are watched": [
        (f"{WATCHED}: x = d.diagonal(1).reshape(-1, 1)", "see(x)"),
        (f"{WATCHED}: x = torch.matmul(d.t()[None], d)", "see(x)"),
        ("x = d.diagonal(1).reshape(-1, 1)", "see(x)"),
    ],
    "a real number's sign gives new zeros under hooks, too": [
        ("with hooks(): d.sgn_()", "(d * d).sum().backward(create_graph=True)",
         "see(b.grad.requires_grad)"),
        ("with hooks(): x = d.sgn()", "(x * x).sum().backward(create_graph=True)",
         "see(b.grad.requires_grad)"),
    ],
    "a view that was written to is no leaf, though nobody asked it yet": [
        ("x = a[:1]", "x.addcmul_(c, c)", "x.grad"),
        ("x = a[:1]", "x.addcmul_(c, c)", "x.requires_grad = False"),
        ("x, y = a[:1], a[1:]", "x.addcmul_(c, c)", "y.grad", "y.requires_grad = False"),
    ],
    "backward asks the inputs for their history before it retains their gradients": [
        ("x, y = a.tensor_split(2)", "a[torch.tensor([True, False])] = c",
         "d.sum().backward(inputs=[y], retain_graph=True)", "see(y)", "y.sum().backward()"),
        ("x, y = a[:1], a[1:]", "x.mul_(c)",
         "y.retain_grad()", "see(y)", "y.retain_grad()", "see(y)"),
    ],
    "mT looks at dims before a view is asked for its history": [
        ("x, y = z", "with torch.inference_mode(): x.mul_(y)", "w = x.mT"),
        ("x, y = z * 1", "with torch.no_grad(): x.mul_(y)", "w = x.mH"),
    ],
    "what a write saves of itself under hooks is a copy, of its other operand the tensor": [
        ("x = d[..., -1:]", f"with keeping(): x.{write}(x)", "d.add_(1)",
         "(d * d).sum().backward()")
        for write in ("mul_", "div_", "hypot_", "fmod_", "pow_")
    ],
}  # fmt: skip


@pytest.mark.quick(26)
@pytest.mark.parametrize("what", FOUND)
def test_found(what: str) -> None:
    for lines in FOUND[what]:
        found = fuzz.difference(fuzz.Drawn((*fuzz_programs.START, *lines)))
        assert found is None, "\n".join([*lines, found.text])


@pytest.mark.parametrize(
    "name", ["order", "edges", "places", "outputs", "stack", "begin", "forget"]
)
def test_a_ctx_has_room_for_the_users_names(name: str) -> None:
    """Names of the engine's own parts do not get in the way of `ctx.order = ...`."""
    lines = (
        "class Mine(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        f"        ctx.{name} = 3\n"
        "        return x * 3\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        f"        return g * ctx.{name}",
        "x = Mine.apply(d)",
        f"see(x.grad_fn.{name})",
        "(x * x).sum().backward()",
    )
    found = fuzz.difference(fuzz.Drawn((*fuzz_programs.START, *lines)))
    assert found is None, found.text
