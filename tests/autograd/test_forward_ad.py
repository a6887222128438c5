"""`autograd.forward_ad` against torch: tangents through ops, views, writes, backward, cuts."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax
from leafax.autograd import forward_ad

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> None:
    """torch compiles a file of its own at its first dual tensor, with a warning."""
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        fw.make_dual(torch.ones(1), torch.ones(1))


def show(log: Log, torch: Any, *tensors: Any) -> None:
    """Note what duals hold, but for the graphs of tangents.

    A tangent's is one node here, named after the op (`MulJvpBackward`), in PyTorch its formula's.
    """
    for t in tensors:
        p, along = torch.autograd.forward_ad.unpack_dual(t)
        log.gradients(p.detach())
        log(p.requires_grad, None if along is None else along.requires_grad)
        if along is not None:
            log.gradients(along.detach().clone())


def test_ops_of_inference_tensors_alone_carry_no_tangents() -> None:
    """They are none of autograd's; a number beside one is an ordinary tensor, and then they are."""

    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        with torch.inference_mode():
            x = torch.tensor([[1.0, 2.0]])
        functions = (lambda t: t * t, lambda t: t * 2, lambda t: 1 - t, lambda t: t.sum(),
                     lambda t: t.exp(), lambda t: t / 2, lambda t: t**2, lambda t: t, torch.t,
                     lambda t: t + x, lambda t: t + torch.ones(2))  # fmt: skip
        with fw.dual_level():
            for f in functions:
                show(log, torch, f(fw.make_dual(x, torch.ones(1, 2))))


def test_levels() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        log(fw.unpack_dual(x)[0] is x, fw.unpack_dual(x).tangent)
        log.attempt(fw.make_dual, x, v)
        log.attempt(fw.exit_dual_level)
        with fw.dual_level() as level:
            log(level, fw._current_level)
            log.attempt(fw.enter_dual_level)
            log.attempt(lambda: fw.exit_dual_level(level=3))
            d = fw.make_dual(x, v)
            log(fw.unpack_dual(d)[1] is v, d._is_view(), d._base is x, d._version)
            log.attempt(fw.make_dual, d, v)
            log.attempt(fw.make_dual, x, v[:1])
            log.attempt(fw.make_dual, torch.arange(2), v)
            log.attempt(fw.make_dual, x, torch.arange(2))
            log.attempt(fw.unpack_dual, 2)
            show(log, torch, d * 2, x * 2, d.detach() * 2, d > 1)
            log(str(d), str(x), str((d * x).sum()))
        log(fw._current_level)
        show(log, torch, d, d * 2)
        fw.enter_dual_level()
        show(log, torch, d, fw.make_dual(d, v * 2) * d)
        fw.exit_dual_level()

        @fw.dual_level()
        def decorated() -> Any:
            return fw._current_level

        log(decorated(), fw._current_level)


def test_a_level_ends_where_its_block_raises() -> None:
    with pytest.raises(KeyError), forward_ad.dual_level():
        raise KeyError
    assert forward_ad._current_level == -1
    with pytest.raises(ZeroDivisionError):
        leafax.func.jvp(lambda x: x / (1 // 0), (leafax.ones(1),), (leafax.ones(1),))
    with forward_ad.dual_level() as level:
        assert level == 0


def test_a_level_keeps_no_tangent_alive() -> None:
    x = leafax.rand(2)
    with forward_ad.dual_level():
        tangent = leafax.rand(2, requires_grad=True)
        leafax.synchronize()  # a pending program holds its leaves
        dual = forward_ad.make_dual(x, tangent)
        alive = weakref.ref(tangent)
        del tangent
        assert alive() is not None
        del dual
        assert alive() is None


def test_ops() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([[0.5, 1.5], [2.5, -1.0]], dtype=torch.float64)
        v = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
        w = torch.tensor([[2.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        with fw.dual_level():
            d, e = fw.make_dual(x, v), fw.make_dual(w, v + 1)
            show(log, torch, d * e, d @ w, w @ d, d / (e + 3), d**2, 2**d, -d, d - 1, 1 - d)
            show(log, torch, d.exp(), d.sum(0), d.mean(), d.softmax(1), d.max(), *d.max(0))
            show(log, torch, torch.cat([d, x, e]), torch.stack([x, x]), torch.where(d > 1, d, w))
            show(log, torch, d.float(), d.sign(), d.argmax(), *d.unbind(0), *d.topk(1))
            show(log, torch, torch.einsum("ij,ij->i", d, e), d.norm(), d.cumsum(0), d.relu())
            show(log, torch, torch.linalg.inv(d), torch.linalg.det(d), d[d > 1], d.to(torch.cfloat))
            with torch.no_grad():
                show(log, torch, d * 3)
            log.attempt(lambda: torch.cdist(d, d, p=3.0))
            log.attempt(lambda: torch.add(x, d, out=w))


@pytest.mark.parametrize(
    "name",
    [
        "pdist", "igamma", "igamma_", "multi_margin_loss", "grid_sample", "nextafter", "unique",
        "unique_dim", "unique_consecutive",
    ],
)  # fmt: skip
def test_ops_without_a_forward_derivative(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw, nn = torch.autograd.forward_ad, torch.nn.functional
        x = torch.tensor([[0.5, 1.5], [2.5, 1.0]])
        with fw.dual_level(), log.catch():
            d = fw.make_dual(x, x + 1)
            calls = {
                "pdist": lambda: nn.pdist(d),
                "igamma": lambda: torch.igamma(d, x),
                "igamma_": lambda: d.igamma_(x),
                "multi_margin_loss": lambda: nn.multi_margin_loss(d, torch.tensor([0, 1])),
                "grid_sample": lambda: nn.grid_sample(
                    d.view(1, 1, 2, 2), torch.zeros(1, 2, 2, 2), align_corners=False
                ),
                "nextafter": lambda: torch.nextafter(d, x + 1),
                "unique": lambda: torch.unique(d),
                "unique_dim": lambda: torch.unique(d, dim=0),
                "unique_consecutive": lambda: torch.unique_consecutive(d),
            }
            show(log, torch, calls[name]())


@pytest.mark.parametrize("lr", [0.1, 0.2, 0.3])
def test_numbers_that_change(lr: float) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        with fw.dual_level():
            d = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
            for k in range(3):
                d = d * (lr + k) + lr
            show(log, torch, d)


def test_requires_grad() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        v = torch.tensor([3.0, 4.0], requires_grad=True)
        with fw.dual_level():
            d = fw.make_dual(x, v)
            log(d.requires_grad, d.is_leaf, d.grad_fn.name())
            show(log, torch, d, d * 2, d.sin(), fw.make_dual(x, v.detach()) * 2)
            p, t = fw.unpack_dual(d)
            log.gradients(*torch.autograd.grad(p.sum(), x, retain_graph=True))
            log(torch.autograd.grad(t.sum(), x, allow_unused=True))
            p, t = fw.unpack_dual((d.sin() * x).sum())
            log.gradients(*torch.autograd.grad(t, (x, v), retain_graph=True))
            t.backward(retain_graph=True)
            log.gradients(x.grad, v.grad)
            with torch.no_grad():
                show(log, torch, d * 3)
            show(log, torch, d.clone().detach_() * 2)
        p.backward()
        log.gradients(x.grad)


def test_views_and_writes() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        with fw.dual_level():
            d = fw.make_dual(x, v)
            d *= 2
            show(log, torch, x, d)
            log(v.clone(), v._version)
            p, t = fw.unpack_dual(d)
            p *= 3
            show(log, torch, d, p)
            t *= 5
            show(log, torch, d)
            view = d.narrow(0, 0, 1)
            view *= 2
            show(log, torch, d, view, x)
            other = torch.tensor([5.0, 6.0])
            other += d
            show(log, torch, other)
            other = torch.tensor([5.0, 6.0])
            first = other[1:]
            other[0] = d[0]
            show(log, torch, other, first)
            other = torch.tensor([5.0, 6.0])
            hidden = other.detach()
            hidden += d
            show(log, torch, other, hidden)
            d.zero_()
            show(log, torch, d, view)
            d[0] = 7.0
            d[d > 1] = d[1] * 2 + 1
            show(log, torch, d)
            m = torch.zeros(2, 2)
            row = m[0]
            row.copy_(d + 1)
            show(log, torch, m, row, m.t()[0], m.view(4)[1:])
            show(log, torch, m.diagonal())


def test_views_in_place() -> None:
    """The tangent is viewed in place as well, the caller's own where it was taken as it is."""

    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        for change in (
            lambda x: x.t_(), lambda x: x.unsqueeze_(0), lambda x: x.squeeze_(),
            lambda x: x.transpose_(0, 1), lambda x: x.as_strided_((2,), (1,)),
        ):  # fmt: skip
            x, v = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
            with fw.dual_level():
                d = fw.make_dual(x, v)
                view = d.view(2, 1)
                change(view)
                show(log, torch, d, view)
                change(d)
                log(fw.unpack_dual(d).tangent is v, v._version)
                show(log, torch, x, d, d * d)
                d.mul_(2)
                view.mul_(3)
                show(log, torch, d, view)
                change(x)
                show(log, torch, x, d)
        log(torch.func.jacfwd(lambda x: x.clone().t_() ** 2)(torch.ones(2, 2)))


@pytest.mark.parametrize(
    "write",
    [
        "x.eq_(y)", "x.ne_(0)", "x.lt_(y)", "x.le_(y)", "x.gt_(0.5)", "x.ge_(y)", "x[0].eq_(y[0])",
        "x.resize_(2, 2)", "x.resize_(3)", "x.resize_as_(y[0])", "x.floor_divide_(y)",
        "x.heaviside_(y)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("both", [False, True])
def test_writes_without_a_derivative(write: str, both: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x, y = torch.tensor([[0.5, 1.5], [2.5, 1.0]]), torch.tensor([[0.5, 1.0], [3.0, 1.0]])
        with fw.dual_level():
            y = fw.make_dual(y, torch.ones(2, 2))
            x = fw.make_dual(x, y.detach() + 1) if both else x
            with log.catch():
                eval(write, {"x": x, "y": y})
            show(log, torch, x)


def test_writes_with_gradients() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        v = torch.tensor([[1.0, 0.5], [0.25, 2.0]])
        with fw.dual_level():
            d = fw.make_dual(x, v)
            y = d * 1.0
            y[0].mul_(d[1])
            y.t()[1] = d[0] ** 2
            show(log, torch, y)
            log.gradients(*torch.autograd.grad(fw.unpack_dual(y.sum())[0], x))
            log.attempt(lambda: x.mul_(d))


def test_forward_over_reverse() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64, requires_grad=True)
        w = torch.tensor([0.5, 3.0, 1.0], dtype=torch.float64, requires_grad=True)
        v = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
        with fw.dual_level():
            d = fw.make_dual(x, v)
            h = (d * w).exp()
            y = (h * d.sin()).sum() + (h.softmax(0) * w).sum()
            gx, gw = torch.autograd.grad(y, (x, w), retain_graph=True)
            show(log, torch, gx, gw)
            gx, gw = torch.autograd.grad(y, (x, w), create_graph=True)
            show(log, torch, gx, gw)
            (g,) = torch.autograd.grad((d * d * w).sum(), w, create_graph=True)
            log.gradients(*torch.autograd.grad(fw.unpack_dual(g).tangent.sum(), x))
            y.backward()
            show(log, torch, x.grad, w.grad)
            y = (d * w).sum()
            y.backward()
            show(log, torch, x.grad, w.grad)
        show(log, torch, w.grad)


def test_custom_functions() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad

        class Mul(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any, b: Any, n: Any) -> Any:
                ctx.save_for_forward(a, b)
                ctx.save_for_backward(a, b)
                ctx.n = n
                show(log, torch, a)
                return a * b * n, a + b

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                a, b = ctx.saved_tensors
                return g * b * ctx.n + h, g * a * ctx.n + h, None

            @staticmethod
            def jvp(ctx: Any, at: Any, bt: Any, nt: Any) -> Any:
                log(bt if bt is None else bt.clone(), nt)
                a, b = ctx.saved_tensors
                return (at * b + a * bt) * ctx.n, at + bt

        class Plain(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 2

        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y, v = torch.tensor([3.0, 0.5]), torch.tensor([1.0, -1.0])
        with fw.dual_level():
            d = fw.make_dual(x, v)
            p, q = Mul.apply(d, y, 3)
            show(log, torch, p, q)
            t = fw.unpack_dual(p.sin() * q).tangent
            log.gradients(*torch.autograd.grad(t.sum(), x))
            log.attempt(Plain.apply, d)
            log(Plain.apply(y))


WRONG = {
    "number": lambda ctx, t: (t, t),
    "type": lambda ctx, t: 3,
    "shape": lambda ctx, t: t[:1],
    "fine": lambda ctx, t: t * 2,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        members = {
            "forward": staticmethod(lambda ctx, a: a * 2),
            "jvp": staticmethod(WRONG[name]),
        }
        f = type("Wrong", (torch.autograd.Function,), members)
        with fw.dual_level():
            d = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
            with log.catch():
                show(log, torch, f.apply(d))


def test_rules_of_functions_that_write_or_view() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad

        def make(forward: Any, jvp: Any) -> Any:
            members = {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
            return type("My", (torch.autograd.Function,), members).apply

        def write(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a)
            return a.mul_(2)

        def ints(ctx: Any, a: Any) -> Any:
            b = a.argsort()
            ctx.mark_non_differentiable(b)
            return a * 1, b

        def new() -> Any:
            return fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))

        with fw.dual_level():
            for jvp in (
                lambda ctx, t: t.mul_(2),
                lambda ctx, t: t * 2,
                lambda ctx, t: t.add_(1) + 0,
            ):
                d = new()
                with log.catch():
                    out = make(write, jvp)(d)
                    log(out is d)
                    show(log, torch, d)
            for jvp in (lambda ctx, t: (t * 1, None), lambda ctx, t: (t, t)):
                with log.catch():
                    show(log, torch, *make(ints, jvp)(new()))
            for jvp in (lambda ctx, t: t.view(2), lambda ctx, t: t * 1):
                d = new()
                with log.catch():
                    show(log, torch, make(lambda ctx, a: a.view(2), jvp)(d))
                with log.catch():
                    show(log, torch, make(lambda ctx, a: a, jvp)(d))


def test_complex() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128, requires_grad=True)
        v = torch.tensor([1j, 2 + 1j], dtype=torch.complex128)
        with fw.dual_level():
            d = fw.make_dual(x, v)
            show(log, torch, d * d, d.conj() * 2, d.abs(), d.real, d.angle(), d.exp().sum())
            t = fw.unpack_dual((d * d.conj()).real.sum()).tangent
            log.gradients(*torch.autograd.grad(t, x))
            view = torch.view_as_real(d.detach())
            show(log, torch, torch.view_as_complex(view))


def test_tangents_in_other_layouts() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.arange(6.0).view(2, 3)
        with fw.dual_level():
            v = torch.tensor([1.0, 2.0, 3.0]).expand(2, 3)
            d = fw.make_dual(x, v)
            log(fw.unpack_dual(d).tangent is v)
            show(log, torch, d.view(6) * 2)
            d.mul_(2)
            show(log, torch, d)
            log(v.clone())
            d = fw.make_dual(x, x.t().contiguous().t())
            show(log, torch, d.view(3, 2))


def test_forward_mode_is_off_inside_functions_and_on_inside_jvp() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad

        class Sine(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                log(fw._is_fwd_grad_enabled())
                ctx.save_for_backward(x)
                return -torch.func.jvp(torch.cos, (x,), (torch.ones_like(x),))[1]

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return g * torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]

        x = torch.tensor(0.5, requires_grad=True)
        y = Sine.apply(x)
        log(fw._is_fwd_grad_enabled())
        log.gradients(y.detach(), *torch.autograd.grad(y, x))
        v = torch.tensor(2.0)
        with fw._set_fwd_grad_enabled(False):
            log.gradients(*torch.func.jvp(torch.sin, (x.detach(),), (v,)))
            log(fw._is_fwd_grad_enabled())

        def shifted(x: Any) -> Any:
            with fw._set_fwd_grad_enabled(False):
                shift = x**2
            return x**2 - shift

        log.gradients(*torch.func.jvp(shifted, (x.detach(),), (v,)))
        nested = torch.func.jvp(
            lambda x: torch.func.jvp(shifted, (x,), (v,))[1], (x.detach(),), (v,)
        )
        log.gradients(*nested)


def test_tangents_of_gradients_through_writes() -> None:
    """Backward reads the tangent that an overwritten tensor had before the write."""

    def into(x: Any, write: Any) -> Any:
        y = x * x
        write(y)
        return y.exp()

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.25, -0.6], dtype=torch.float64)
        writes = (
            lambda y: y.sin_(),
            lambda y: y.mul_(3 * y),
            lambda y: y[0].sin_(),
            lambda y: y[:1].mul_(y[1:].clone()),
            lambda y: (y.mul_(2), y.pow_(2), y.sin_()),
            lambda y: y.detach().mul_(2),
        )
        for write in writes:

            def f(x: Any, write: Any = write) -> Any:
                return into(x, write).sum()

            log.gradients(torch.func.hessian(f)(x))
        with torch.autograd.forward_ad.dual_level():
            leaf = x.clone().requires_grad_()
            d = torch.autograd.forward_ad.make_dual(leaf, torch.ones_like(x))
            y = (d * d).sin_()
            y.detach().tolist()  # a cut
            (g,) = torch.autograd.grad(y.sum(), d)
            log.gradients(torch.autograd.forward_ad.unpack_dual(g).tangent)


def test_the_node_of_what_unpack_dual_gives() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        fw = torch.autograd.forward_ad
        x = torch.tensor([1.25, -0.6], requires_grad=True)
        with fw.dual_level():
            d = fw.make_dual(x, torch.ones_like(x))
            for t in (d, d * 2, d.view(-1)):
                p = fw.unpack_dual(t).primal
                log(t.grad_fn.name(), p.grad_fn.name(), p._is_view())


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("along", ["float16", "float32", "float64"])
def test_tangents_of_another_dtype(kind: str, along: str) -> None:
    """Tangents that follow from a wider tangent are as wide."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], dtype=getattr(torch, kind), requires_grad=True)
        t = torch.tensor([0.5, 1.5], dtype=getattr(torch, along), requires_grad=True)
        for f in (
            lambda x: x * 2,
            lambda x: x * x,
            lambda x: x.view(2, 1).t(),
            lambda x: x.double() * x,
            lambda x: (x, x * 1),
        ):
            found = torch.func.jvp(f, (x,), (t,))[1]
            found = found if isinstance(found, tuple) else (found,)
            log([(str(y.dtype), y.tolist()) for y in found])
            g = torch.autograd.grad(sum(y.double().sum() for y in found), (x, t), allow_unused=True)
            log([None if y is None else (str(y.dtype), (y + torch.zeros(2)).tolist()) for y in g])
