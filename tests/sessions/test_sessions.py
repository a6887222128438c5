"""Short sessions: each statement is tried under both libraries, and what it shows is compared.

What a statement shows is the value of an expression, what it prints, its warnings, and its error;
the session goes on after an error. This is for what a user types: mistakes above all.
"""

from __future__ import annotations

import pytest
from helpers.sessions import compare

SESSIONS = {
    "python data": """
        t = torch.tensor
        t([1, None]); t(None); t({1: 2}); t([{1: 2}]); t({1, 2}); t(object()); t(x for x in "a")
        t([1, "a"]); t(["a"]); t("a"); t(b"a"); t([[1, 2], [3, "a"]]); t(torch.float)
        t([[1, 2], {}])
        t([[1], 2]); t([1, [2]]); t((1, (2,))); t([[1, 2], [3]]); t([[[1, 2]], [[1, 2], [3, 4]]])
        t([[], [1]]); t([[1], []]); t([[[]]]).shape; t([range(2), range(2)]); t(bytearray(b"ab"))
        t(np.float64(3)); t([np.float64(3), 1]); t([np.float32(3), 1.0])
        t([np.int8(3), np.int16(2)])
        t([np.array(3), 2]); t([np.array([3.0]), [1]]); t([np.bool_(True)]); t([np.complex64(1)])
        t(np.array(["a"])); t(np.array([1], ">i4")); t([True, 2.5]); t([1, 2.5, 1j]); t([1e400])
        t(1e39)
        t(2**70); t(2**63, dtype=torch.uint64); t(2**63, dtype=torch.float)
        t([2**40], dtype=torch.int32)
        t([300], dtype=torch.uint8); t([-1], dtype=torch.uint8); t([-1.5], dtype=torch.uint8)
        t([1.5], dtype=torch.int); t([math.nan], dtype=torch.int); t([1e30], dtype=torch.int64)
        t([1j], dtype=torch.float); t([1j], dtype=torch.int); t([0.5, 0, 2], dtype=torch.bool)
        t([None], dtype=torch.bool); t([2, "3"], dtype=torch.float); t([1e30], dtype=torch.half)
        torch.as_tensor([1, None]); torch.Tensor([1, "a"]); torch.Tensor([[1], 2])
        torch.Tensor({1: 2})
        torch.Tensor(range(3)); torch.LongTensor([1.7]); torch.LongTensor([None])
        torch.ByteTensor([300])
    """,
    "tensors in lists are numbers": """
        t, x = torch.tensor, torch.tensor([1.0, 2.0], requires_grad=True)
        t([torch.ones(2), torch.ones(2)]); t([torch.ones(1), 2.0]); t([torch.tensor([[3.0]]), 2])
        t([torch.tensor(3), 2.0]); t([torch.tensor(3.0, dtype=torch.double), 2.0]); t([x[0], 2.0])
        t([[x[0]], [x[1]]]); t([x[0], x[1]], requires_grad=True)
        t([torch.tensor(3.0)], dtype=torch.int)
        t([torch.tensor([1, 2])]); t([torch.ones(()), [1.0]]); t([[1.0], torch.ones(())])
        t([[1.0], torch.ones(1)]); complex(x[0]); float(x[0]); int(x[0])
    """,
    "what is not writable, not there, or of another type": """
        x = torch.ones(2, requires_grad=True)
        x.grad_fn = 3; x.shape = 3; x.dtype = torch.int; x.is_leaf = 3; x.T = 3
        torch.set_grad_enabled("a"); torch.set_grad_enabled(3); torch.is_grad_enabled()
        "a" in x; None in x; 1 in x; x[0] in x; ~x; ~torch.tensor([1, 0]); torch.full((2,), "a")
        with torch.autograd.graph.saved_tensors_hooks(3, 4): x * 2
    """,
    "hooks": """
        x = torch.ones(2, requires_grad=True)
        h = x.register_post_accumulate_grad_hook(lambda x: 3); x.sum().backward(); h.remove()
        h = x.register_post_accumulate_grad_hook(lambda x: x); x.sum().backward(); h.remove()
        h; torch.autograd.graph.register_multi_grad_hook([x], print)
        torch.utils.hooks.RemovableHandle is type(h); (x * x).grad_fn._raw_saved_self
        from torch.utils.hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks
        h = x.register_hook(unserializable_hook(print)); warn_if_has_hooks(x)
        h = x.register_hook(len); warn_if_has_hooks(x)
        a, b = __import__("collections").OrderedDict(), __import__("collections").OrderedDict()
        h = RemovableHandle(a, extra_dict=b); a[h.id] = 1; b[h.id] = 2; h.remove(); a, b
    """,
    "nodes": """
        x = torch.ones(2, requires_grad=True)
        inner = ("_register_hook_dict", "__")
        [d for d in dir((x * x).grad_fn) if not d.startswith(inner)]
        [d for d in dir(x.exp().grad_fn) if not d.startswith(inner)]
        (x * x).grad_fn.next_functions[0][0]._sequence_nr()
        e = torch.autograd.graph.get_gradient_edge(x * 2)
        copy.copy(x.exp().grad_fn); copy.deepcopy((x * 2).grad_fn.next_functions[0][0])
        len(e), e.output_nr, e.ownership_token, type(e); torch.autograd.graph.GradientEdge(3, 0)
    """,
    "copies": """
        x = torch.ones(2, requires_grad=True); x.note, x.table = "w", {"of": [1]}
        y = copy.deepcopy(x); y.note, y.table, y.table["of"] is x.table["of"], y.requires_grad
        y = copy.copy(x); y.note, y.table is x.table
        y = __import__("pickle").loads(__import__("pickle").dumps(x)); y.note, y.table, y
        x.detach().note; x.clone().note; (x * 1).note; x.view(2).note; x.data.note
    """,
    "hooks by their number": """
        x = torch.ones(2, requires_grad=True); y = x * 2; x._backward_hooks, y._backward_hooks
        h, k = x.register_hook(abs), y.register_hook(abs)
        x._backward_hooks == {h.id: abs}, y._backward_hooks == {k.id: abs}
        type(x._backward_hooks); h.remove(); x._backward_hooks
        copy.deepcopy(x)._backward_hooks, y.detach()._backward_hooks
        x._backward_hooks = {7: torch.neg}; y.sum().backward(); x.grad
    """,
    "values under vmap": """
        x, vmap = torch.ones(3, 2), torch.vmap
        vmap(lambda r: r.item())(x); vmap(lambda r: bool(r))(x); vmap(lambda r: float(r))(x)
        vmap(lambda r: r.sum().item())(x); vmap(lambda r: 1 if r.sum() > 0 else 2)(x)
    """,
    "forward mode and inference mode": """
        import torch.autograd.forward_ad as fw
        p, t = torch.tensor([1.0, 2.0]), torch.ones(2)
        fw.make_dual(p, t, level=3); fw.unpack_dual(p, level=3)
        with fw.dual_level(): fw.make_dual(p, t, level=1)
        with fw.dual_level():
            d = fw.make_dual(p, t)
            with torch.inference_mode():
                print(fw._is_fwd_grad_enabled(), fw.unpack_dual(d), d, d * 2)
                d.mul_(2)
                with torch.inference_mode(False):
                    print(d * 2, fw._is_fwd_grad_enabled())
            print(d)
        with torch.inference_mode():
            with fw.dual_level(): print(fw.make_dual(p, t) * 2)
            print(torch.func.jvp(torch.sin, (p,), (t,)), torch.func.jacfwd(torch.sin)(p))
    """,
    "cotangents": """
        x = torch.tensor([1.0, 2.0]); vjp = torch.func.vjp
        vjp(lambda x: x.int(), x); torch.func.jacrev(lambda x: (x, x.int()))(x)
        torch.func.hessian(lambda x: x.int().sum())(x)
        vjp(torch.sum, x)[1](None); vjp(torch.sin, x)[1](None); vjp(torch.sin, x)[1](3)
        vjp(torch.sin, x)[1](x, x); vjp(torch.sin, x)[1](x, torch.tensor(1)); vjp(torch.sin, x)[1]()
        vjp(lambda x: (x, x), x)[1]((x, None)); vjp(torch.sin, x)[1]([x])
    """,
    "a saved result carries its tangent": """
        class Cube(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x**3, 3 * x**2
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(inputs[0], output[1])
                ctx.save_for_forward(inputs[0], output[1])
            @staticmethod
            def backward(ctx, g, h):
                x, dx = ctx.saved_tensors
                return g * dx + h * 6 * x
            @staticmethod
            def jvp(ctx, t):
                x, dx = ctx.saved_tensors
                return t * dx, t * 6 * x
        cube, x = (lambda x: Cube.apply(x)[0]), torch.tensor(2.0)
        torch.func.hessian(cube)(x); torch.func.jvp(torch.func.grad(cube), (x,), (x,))
        import torch.autograd.forward_ad as fw
        x.requires_grad_()
        with fw.dual_level(): print(torch.autograd.grad(cube(fw.make_dual(x, torch.ones(()))), x))
    """,
    "set_ takes the strides of its source": """
        x = torch.zeros(2, 2).t_(); x.set_(torch.ones(2)); x.as_strided((2,), (1,)); x.stride()
        x = torch.zeros(2, 2); x.set_((torch.ones(3, 2) * 2).t()); x.stride(); x.add_(1)
        x = torch.ones(3, 2).t_(); x.set_(); x.stride(), x.shape
    """,
    "made tensors": """
        make = torch.testing.make_tensor
        t = make((2, 3), dtype=torch.float, device="cpu", requires_grad=True); t.shape, t.is_leaf
        t = make(4, dtype=torch.int64, device="cpu", low=2, high=3); t
        t = make(2, 3, dtype=torch.cdouble, device="cpu", noncontiguous=True); t.dtype, t.stride()
        make(3, dtype=torch.int8, device="cpu", low=0, high=1, exclude_zero=True)
        make(3, dtype=torch.bfloat16, device="cpu", low=1, high=2).dtype
        make(2, dtype=torch.int, device="cpu", requires_grad=True)
        make(2, dtype=torch.float, device="cpu", low=3, high=2)
        make(2, dtype=torch.uint8, device="cpu", low=300, high=400)
        make(2, dtype=torch.float, device="cpu", low=math.nan)
        make(2, dtype=torch.float, device="cpu", low=3, high=3)
        t = [torch.ones(2)]; torch._foreach_add_(t, 1) is t
    """,
    "gradcheck counts and says what PyTorch's does": """
        import itertools
        class Two(torch.autograd.Function):
            count = 0
            @staticmethod
            def forward(ctx, x, y): return x.clone(), y.clone()
            @staticmethod
            def jvp(ctx, a, b):
                Two.count += 1
                return a, b
        class Random(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def vjp(ctx, g): return g * 2
            @staticmethod
            def jvp(ctx, t):
                torch.randn_like(t)
                return t * 2
        def counted(y, undefined, batched):
            x, Two.count = torch.ones(1, dtype=torch.double, requires_grad=True), 0
            y = torch.ones(1, dtype=torch.double, requires_grad=y)
            torch.autograd.gradcheck(
                Two.apply, (x, y), check_forward_ad=True, check_undefined_grad=undefined,
                check_backward_ad=False, check_batched_forward_grad=batched)
            return Two.count
        [counted(*which) for which in itertools.product((True, False), repeat=3)]
        x, check = torch.ones(2, dtype=torch.double, requires_grad=True), torch.autograd.gradcheck
        check(Random.apply, (x,), check_forward_ad=True, check_batched_forward_grad=True)
        class Turns(torch.autograd.Function):
            count = 0
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g):
                Turns.count += 1
                return g * (1 + 1e-3 * (Turns.count % 2))
        check(Turns.apply, (x,), atol=0.1)
    """,
    "a rounding mode that is said to be None has its node": """
        a, b = (torch.tensor([v], requires_grad=True) for v in (1.5, 2.0))
        def seen(c):
            n = c.grad_fn
            grads = torch.autograd.grad(c, (a, b), allow_unused=True)
            return n.name(), getattr(n, "_saved_rounding_mode", 0), grads
        seen(torch.div(a, 2.0)); seen(torch.div(a, 2.0, rounding_mode=None)); seen(a / b)
        seen(torch.div(a, b, rounding_mode=None)); seen(a.clone().div_(b, rounding_mode=None))
        seen(torch.div(2.0, b, rounding_mode=None)); seen(a.divide(b))
        seen(a.divide(b, rounding_mode=None)); seen(a.div(b, rounding_mode="floor"))
        g = torch.autograd.grad(torch.div(a, b, rounding_mode=None), (a, b), create_graph=True)
        torch.autograd.grad(g[1], (a, b))
    """,
    "nodes of writes": """
        class Dirty(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            def backward(ctx, g): return g * 2
        x = torch.ones(1, requires_grad=True).clone(); y = Dirty.apply(x[:]); x.grad_fn
    """,
    "zeros of complex gradients are positive where PyTorch's are": """
        z = torch.ones(2, dtype=torch.cdouble, requires_grad=True)
        w = torch.tensor([1 + 0j, 2j], requires_grad=True)
        g = lambda f: (torch.autograd.grad(f(z), z), torch.autograd.grad(f(w), w))
        g(lambda z: z.sum().abs()); g(lambda z: z.real.sum()); g(lambda z: (z * z).sum().abs())
        g(lambda z: (z * 2).real.sum()); g(lambda z: (z * 2j).real.sum())
        g(lambda z: z.exp().real.sum()); g(lambda z: (z / 2).abs().sum()); g(lambda z: z[0].abs())
        g(lambda z: (-z).sum().abs()); g(lambda z: z.mean().abs()); g(lambda z: (z @ z).abs())
        g(lambda z: torch.fft.fft(z).abs().sum()); g(lambda z: z.cumsum(0).abs().sum())
        g(lambda z: torch.add(z, z, alpha=2j).abs().sum()); g(lambda z: z.conj().abs().sum())
        g(lambda z: torch.view_as_real(z).sum()); g(lambda z: z.expand(2, 2).sum().abs())
        z.sum().abs().backward(); z.grad; torch.func.grad(lambda z: z.abs().sum())(z.detach())
    """,
    "older forms of calls": """
        a = torch.eye(2)
        a.add(2, a); a.clone().add_(2, a); torch.add(a, 2, 3); torch.sub(a, 2, a)
        a.addcmul(2, a, a); a.clone().addcdiv_(-2, a, a + 1); torch.addcmul(a, 2.0, a, a)
        a.addmm(1, 2, a, a); a.addmm(1, a, a); a.clone().addmm_(1, 2, a, a)
        torch.addmm(1, a, a, a); torch.addr(1, a, 2, a[0], a[0]); torch.addmv(1, a[0], 2, a, a[0])
        torch.baddbmm(1, a[None], 2, a[None], a[None]); a.addbmm(1, 2, a[None], a[None])
        a.cholesky(); torch.qr(a)[1].abs(); torch.lu(a)[0]; torch.triangular_solve(a, a)[0]
        torch.meshgrid(a[0], a[1]); type(a.max(0)), torch.return_types.max
    """,
    "keywords and sizes": """
        a = torch.ones(2, 2)
        torch.transpose(input=a, dim0=0, dim1=1); torch.reshape(input=a, shape=(4,))
        torch.swapdims(input=a, dim0=0, dim1=1); a.swapdims(0); a.clone().swapdims_(dim0=0, dim1=1)
        torch.swapaxes(a, axis0=0, axis1=-1); torch.swapdims(a, 0, 2); torch.swapdims(a, "a", 1)
        torch._assert(True, "a"); torch._assert(a[0, 0] < 0, "a"); torch._assert(a[0, 0] > 0, "a")
        torch._assert(a > 0, "a"); torch._assert(condition=0, message=3)
        torch.select(input=a, dim=0, index=1); torch.unsqueeze(dim=0, input=a).shape
        torch.squeeze(input=a); torch.zeros(2.0); torch.zeros((2, 1.5)); torch.ones(2, "a")
        torch.full(2, 1); torch.randn("a"); a.view(2.0, 2); a.topk(1.5); a.unsqueeze(1.0)
        a.narrow(0, 0.5, 1); a.sum(0.5); a.requires_grad_(3); a.requires_grad = 3
        a.sum("a"); torch.sum(a, dims=0); a.sum(foo=1); a.sum(0, True, 3)
    """,
    "hashes of nothing and of numbers": """
        h, o = torch.hash_tensor, torch.ones
        h(o(())); h(o(()), 0); h(o(()), 0, keepdim=True); h(o(()), -1); h(o(0)); h(o(0), 0)
        h(o(2, 0), 0); h(o(2, 0), 1); h(o(0, 2), (0,)); h(o(0, 2), 1); h(o(2), dim=(), keepdim=True)
    """,
    "paths in trees": """
        import torch.utils._pytree as pt
        from collections import OrderedDict, defaultdict, namedtuple
        Pair = namedtuple("Pair", "x y")
        tree = {"b": [1, (2, Pair(3, 4))], "a": OrderedDict(z=5), "c": defaultdict(list, {0: None})}
        pt.tree_map_with_path(lambda p, v: (pt.keystr(p), v), tree)
        found, spec = pt.tree_flatten_with_path(tree); found; pt.key_get(tree, found[3][0])
        pt.tree_map_with_path(lambda p, v, w: (len(p), v + w), [1, (2,)], [3, (4,)])
        list(pt.tree_iter(tree)); pt.tree_is_leaf(3), pt.tree_is_leaf([3]), pt.tree_is_leaf(None)
        pt.tree_leaves_with_path([1, [2]], is_leaf=lambda x: x == [2])
        pt.tree_all_only(int, lambda x: x > 0, tree), pt.tree_any_only(int, lambda x: x > 4, tree)
        pt.tree_map_only_(int, print, [1, "a"])
    """,
    "a generated rule for vmap passes missing tangents": """
        class Power(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x, k): return x**k, x + 1
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.k = inputs[1]
                ctx.save_for_forward(inputs[0])
                ctx.mark_non_differentiable(output[1])
            @staticmethod
            def jvp(ctx, t, _):
                (x,) = ctx.saved_tensors
                return t * ctx.k * x ** (ctx.k - 1), None
        x = torch.tensor([1.0, 2.0])
        torch.func.vmap(lambda x: torch.func.jvp(lambda x: Power.apply(x, 3)[0], (x,), (x,)))(x)
    """,
    "checkpoints' neighbours": """
        from torch.utils.checkpoint import check_backward_validity, detach_variable
        from torch.utils.checkpoint import DefaultDeviceType
        x = torch.ones(2, requires_grad=True)
        detach_variable((x * 2, x.detach(), 3)); detach_variable(x)
        check_backward_validity([x.detach(), 3])
        DefaultDeviceType.get_device_type()
    """,
    "stacks of models": """
        class Scale:
            training = True
            def __init__(self, x, grad=True):
                self.a, self.b = torch.tensor(x, requires_grad=grad), torch.tensor(1.0)
            def named_parameters(self): return [("a", self.a)]
            def named_buffers(self): return [("b", self.b)]
        stack, one = torch.func.stack_module_state, Scale(1.0)
        stack([one, Scale(2.0)]); stack([]); stack([one, Scale(2.0, False)])
        other = Scale(1.0); other.training = False; stack([one, other])
        other = type("Other", (Scale,), {})(1.0); stack([one, other])
        many = torch.func.vmap(lambda p, x: p["a"] * x, (0, None))
        many(stack([one, one])[0], torch.tensor(2.0)).detach()
    """,
    "a step without state": """
        x = torch.ones(2, requires_grad=True)
        o = torch.optim.SGD([x], lr=0.1); x.sum().backward(); o.step(); o.step(); len(o.state), x
        o = torch.optim.SGD([x], lr=0.1, momentum=0.9); o.step()
        len(o.state), o.state_dict()["state"]
    """,
    "what a context was told": """
        names = ("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable",
                 "needs_input_grad", "saved_tensors", "_materialize_non_diff_grads")
        def look(ctx): print({n: getattr(ctx, n) for n in names})
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                look(ctx)
                ctx.save_for_backward(x, None); ctx.save_for_forward(y)
                a, b = x * 2, y * 3
                ctx.mark_non_differentiable(b)
                ctx.mark_dirty(y.add_(1))
                look(ctx)
                return a, b, y
            @staticmethod
            def backward(ctx, g, h, k):
                look(ctx)
                return g, k
        x = torch.ones(1, requires_grad=True)
        a, b, y = F.apply(x, torch.ones(1))
        look(a.grad_fn); a.backward()
        f = F()
        f.name(), f.next_functions, f._input_metadata, f.metadata, f.saved_tensors, f.to_save
        x._backward_hooks = {}; f._register_hook_dict(x); f.register_hook(print).id >= 0
        f._set_sequence_nr(2)
        f._sequence_nr(), f.needs_input_grad, f.requires_grad; f.save_for_backward(x); f.to_save
        f.nothing
    """,
    "batches of gradients and their shapes": """
        x = torch.ones(2, requires_grad=True); y = x * 2; t = torch.ones
        edge = torch.autograd.graph.get_gradient_edge(y)
        shapes = torch.autograd._calculate_shape
        shapes(y, t(3, 2), True); shapes(edge, t(2), False); shapes(edge, t(2, 2), True)
        def batched(out, grad):
            return torch.autograd.grad(out, x, grad, is_grads_batched=True, retain_graph=True)
        batched(y, t(())); batched(y, t(2)); batched(y, t(0, 2)); batched(y, t(2, 3))
        batched(edge, t(2, 2)); batched(edge, t(2, 3)); batched(y.sum(), t(2, 1))
        torch.autograd.grad(edge, x, t(3))
    """,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name: str) -> None:
    compare(SESSIONS[name])
