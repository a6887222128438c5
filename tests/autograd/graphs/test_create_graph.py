"""The graph of a gradient: nodes, edges and second gradients as PyTorch's formulas give them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.sameness import Log, assert_equal, run, same

import leafax

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "arithmetic": lambda lib, x, y: (x * y + 3 * x - y / x + lib.add(x, y, alpha=2) - 1 / y) / 4,
    "powers": lambda lib, x, y: x**2 + x**3 + x**y + 2**x + x.sqrt() * y.rsqrt() + x.square(),
    "elementwise": lambda lib, x, y: x.exp().log() + x.sin() * y.cos() + x.tan() + y.sinh(),
    "squashed": lambda lib, x, y: x.tanh() + y.sigmoid() * (x - 2).relu() + x.softmax(1),
    "inverse": lambda lib, x, y: (x / 9).asin() + y.atan() + x.log1p() + y.erf() + y.expm1(),
    "inverse of hyperbolic ones": lambda lib, x, y: (
        (x + 2).acosh() + y.asinh() + (x / 9).atanh() + y.erfc() + (x / 9).erfinv()
    ),
    "products": lambda lib, x, y: x @ y + x.mm(y) + x.mv(y[0]) + x[0] @ y[1],
    "sums": lambda lib, x, y: x.sum(1) + y.mean(0) + x.mean() * y.sum(),
    "shapes": lambda lib, x, y: lib.cat([x.t(), y.reshape(4).view(2, 2)]).unsqueeze(1) * x,
    "parts": lambda lib, x, y: lib.stack([x[0], y[:, 1]]) * x.expand(3, 2, 2),
    "choices": lambda lib, x, y: lib.where(x > y, x, y * 2) + lib.maximum(x, y),
    "casts": lambda lib, x, y: x.double() * y,
    "sorted": lambda lib, x, y: x.sort(0)[0] + y.topk(2)[0] + x.sort(stable=True, dim=0)[0],
    "selected": lambda lib, x, y: (
        x.max(1)[0] + y.min(0)[0] + x.kthvalue(1, 1, True)[0] + y.median(0)[0] + x.mode(-1)[0]
        + y.nanmedian(1)[0] + x.sum().max(0)[0] + x.cummax(0)[0] + y.cummin(1)[0]
    ),
    "extremes": lambda lib, x, y: (
        x.amax() + y.amin(1) + x.amax(0, True) + y.amax((0, 1)) + x.sum().amin() + y.amax(-1)
    ),
    "gathered": lambda lib, x, y: (
        x.gather(0, lib.tensor([[1, 1], [0, 1]])) + y.index_select(1, lib.tensor([1, 1]))
        + x.take(lib.tensor([3, 0])) + y[lib.tensor([0, 0])] + x[lib.tensor([1]), lib.tensor([0])]
        + y[:, lib.tensor([1, 0])]
    ),
    "scattered": lambda lib, x, y: (
        x.scatter(0, lib.tensor([[1, 0], [0, 1]]), y)
        + y.scatter_add(1, lib.tensor([[1], [1]]), x[:, :1])
        + x.scatter(1, lib.tensor([[1], [0]]), 3.0) + x.put(lib.tensor([1, 2]), y[0])
        + y.put(lib.tensor([1, 1]), x[0], True) + x.index_put((lib.tensor([0]),), y[1])
        + y.index_put((lib.tensor([1, 1]),), x, accumulate=True)
    ),
    "rows": lambda lib, x, y: (
        x.index_add(0, lib.tensor([1]), y[:1], alpha=3) + y.index_copy(1, lib.tensor([0]), x[:, 1:])
        + x.index_fill(0, lib.tensor([1, 1]), y[0, 0]) + y.index_fill(1, lib.tensor([0]), 2.0)
    ),
    "masked": lambda lib, x, y: (
        x.masked_fill(y > 1, 0) + y.masked_fill(x > 2, x[0, 0]) + x.masked_select(y == 0.5)
        + y[0].masked_select(lib.tensor([[True, False]])) + x.sum().masked_select(x == 1)
    ),
    "cut up": lambda lib, x, y: (
        x.unbind(0)[1] + y.unbind(1)[0] + x.split(1)[1] + y.chunk(2, 1)[0] + x.split([1, 1], 1)[1]
        + x[...] * y.squeeze()
    ),
    "turned": lambda lib, x, y: (
        x.flip(0) + y.roll(1, 0) + x.rot90() + y.tril() + x.triu(1) + y.cumsum(1)
        + x.repeat(2, 1, 1) + y.tile(2, 1, 1)
        + lib.nn.functional.pad(x, (1, 1, 0, 1))[:2, 1:3] + y.diag_embed().sum(1)
    ),
    "bounded": lambda lib, x, y: (
        x.clamp(0, 1) + y.clamp(min=1) + x.clamp_max(y) + x.repeat(3, 1, 1).clamp(y, y + 1)[0]
        + y.nansum() + x.nan_to_num() + lib.nn.functional.silu(y) + x.max() + y.min()
        + x.median() + y.nanmedian() + lib.nn.functional.logsigmoid(x) + lib.hypot(x, y)
    ),
    "spread out": lambda lib, x, y: x.std() + y.std(0) + x.var() + y.var(1, keepdim=True),
    "written": lambda lib, x, y: (
        x.clone().add_(y).mul_(y).sub_(x.float()).div_(y).mul_(2).sin_().pow_(2).exp_()
        + lib.zeros_like(y).copy_(y[0]) + lib.zeros(2, 2).copy_(x)
        + y.clone().masked_fill_(x > 1, 2.0).clamp_(min=1) + x.clone().index_fill_(
            0, lib.tensor([0]), y[0, 0])
        + y.clone().lerp_(x, 0.5).tril_()
    ),
    "parts written": lambda lib, x, y: (
        x.select_scatter(y[0], 0, 1) + y.slice_scatter(x[:1], 0, 1) + x.diagonal_scatter(y[0])
        + lib.baddbmm(x[None], y[None], x[None]) + lib.addr(y, x[0], y[1], alpha=2)
    ),
    "special": lambda lib, x, y: (
        x.lgamma() + y.digamma() + x.polygamma(1) + (y + 3).mvlgamma(2) + x.i0() + y.deg2rad()
        + x.rad2deg() + y.frexp()[0] + lib.atan2(x, y) + lib.nn.functional.mish(x)
        + (x / 9).logit() + x.logaddexp(y) + y.logaddexp2(x) + lib.ldexp(x, y)
        + x.fmax(y) + x.fmin(y) + x.copysign(y) + x.dist(y) + lib.nn.functional.celu(x)
    ),
    "complex": lambda lib, x, y: (
        lib.complex(x, y).abs() + lib.polar(x, y).real + lib.ldexp(x + 1j * y, x * 1j - y).imag
    ),
    "with means": lambda lib, x, y: (
        sum(lib.var_mean(x)) + sum(lib.std_mean(y, 1)) + lib.var_mean(x, 0)[1]
        + lib.std_mean(y[0], 0)[1] + x[0].var(0) + lib.std_mean(y)[0]
    ),
    "matrices": lambda lib, x, y: (
        x.trace() + y[:, :1].trace() + y[0].diag() + x.diag() + lib.addmv(x[0], y, x[1], beta=3)
        + lib.addbmm(x, y[None], x[None], alpha=2) + x[0].vdot(y[0])
        + lib.block_diag(x[:1], y[:1])[:, 1:3] + x[0].broadcast_to(2, 2)
    ),
    "copied": lambda lib, x, y: (
        lib.view_copy(x, (4,)).view(2, 2) + lib.expand_copy(y[0], (2, 2)) + lib.t_copy(x)
        + lib.transpose_copy(y, 0, 1) + lib.unsqueeze_copy(x, 0) + lib.unbind_copy(y)[1]
        + x.unsafe_split(1)[0] + y.unsafe_chunk(2, 1)[1] + lib.permute_copy(x, (1, 0))
    ),
    "windows": lambda lib, x, y: (
        lib.nn.functional.unfold(x[None, None], 2).sum()
        + lib.nn.functional.fold(y.reshape(1, 4, 1), 2, 2) + lib.constant_pad_nd(x, (1, -1))
        + lib.nn.functional.pad(y[None], (1, 0), "reflect")[0, :, :2]
        + lib.nn.functional.interpolate(x[None], 2, mode="linear")
        + lib.nn.functional.pixel_unshuffle(y[None], 2).sum()
        + lib.nn.functional.pixel_shuffle(x.reshape(4, 1, 1), 2)
    ),
    "losses": lambda lib, x, y: (
        lib.nn.functional.binary_cross_entropy_with_logits(x, y)
        + lib.nn.functional.binary_cross_entropy_with_logits(y, x, y.detach(), reduction="sum")
        + lib.nn.functional.triplet_margin_loss(x, y, x * y) + lib.nn.functional.normalize(x, 1)
        + lib.nn.functional.nll_loss(x, lib.tensor([1, 0])) + lib.pairwise_distance(x, y)
        + lib.nn.functional.soft_margin_loss(y, x.detach())
    ),
    **{
        f"reduced by {reduce}": lambda lib, x, y, reduce=reduce: (
            x.scatter_reduce(0, lib.tensor([[1, 1], [0, 1]]), y, reduce)
            + y.scatter_reduce(1, lib.tensor([[1], [1]]), x[:, :1], reduce, include_self=False)
            + (0 if reduce == "sum" else x.index_reduce(1, lib.tensor([1, 1]), y, reduce))
        )
        for reduce in ("sum", "mean", "amax", "amin")
    },
    "between": lambda lib, x, y: x.lerp(y, 0.3) + y.lerp(x, x.detach()) + x.lerp(y, y),
}  # fmt: skip


def described(node: Any) -> str:
    if node is None:
        return "None"
    return f"{type(node).__name__}({', '.join(described(n) for n, _ in node.next_functions)})"


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_graph_of_a_gradient(name: str) -> None:
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = lib.tensor([[0.5, 1.5], [2.5, 0.7]], requires_grad=True)
        out = FUNCTIONS[name](lib, x, y)
        go = lib.full_like(out, 0.3).requires_grad_()
        grads = lib.autograd.grad(out, (x, y), go, create_graph=True)
        log([described(g.grad_fn) for g in grads])
        total = sum((g * g).sum() for g in grads if g.requires_grad)
        log.gradients(*lib.autograd.grad(total, (x, y, go), allow_unused=True))

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, name)
    assert_equal(run(program, leafax, cut_at=-1), expected, f"{name}, cut at every line")


def test_a_gradient_depends_on_what_its_formula_reads() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor(0.5, requires_grad=True)
        a = lib.tensor(2.0, requires_grad=True)
        (d,) = lib.autograd.grad(x * a, x, create_graph=True)
        log(lib.autograd.grad(d, (x, a), allow_unused=True, retain_graph=True))
        (zero,) = lib.autograd.grad(d, x, create_graph=True, materialize_grads=True)
        log(zero, lib.autograd.grad(zero, x, materialize_grads=True))


def test_what_has_no_derivative() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([1.5, 2.5], requires_grad=True)
        c = lib.tensor([1.0, 2.0])
        for out in (
            2 % x,
            lib.heaviside(x, c),
            lib.floor_divide(x, c),
            lib.igamma(x, c),
            lib.igammac(x, c),
            lib.special.zeta(x, c),
            x.clone().acosh_(),
            (x / 9).atanh_(),
            x.clone().asinh_(),
        ):
            log(out.grad_fn.name())
            log.attempt(out.sum().backward)
        log(x.grad)


def test_names_of_products() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.ones(2, 3, requires_grad=True)
        v = lib.ones(3, requires_grad=True)
        log((x @ v).grad_fn, (v @ v).grad_fn, (x @ x.t()).grad_fn)
        log((lib.ones(2, 2, 3) @ x.t()).grad_fn.name(), (v @ x.t()).grad_fn.name())
        y = x @ v
        z = y * y
        y.add_(1)
        log.attempt(z.sum().backward)


COMPLEX: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda lib, x, y: x * 2j + 2j * x * (1 + 2j),
    lambda lib, x, y: x / 2j + y / x,
    lambda lib, x, y: lib.add(x, y, alpha=2j) - lib.sub(x, y, alpha=1j),
    lambda lib, x, y: x**y + x**2j,
    lambda lib, x, y: 2j**x + (1 + 1j) ** y + (-2.0) ** x,
    lambda lib, x, y: x.square() * y.exp() + x.sin().reciprocal() + y.sqrt(),
    lambda lib, x, y: lib.addcmul(x, y, x, value=2j) + lib.lerp(x, y, 2j) + lib.vdot(x, y),
    lambda lib, x, y: y.conj() * x + y.angle() + y.sgn() * x.acosh() + y.asinh() + y.atanh(),
    lambda lib, x, y: lib.view_as_complex(lib.view_as_real(y) * 2) * x + y.resolve_conj().conj(),
)


@pytest.mark.quick(3)
@pytest.mark.parametrize("k", range(len(COMPLEX)))
@pytest.mark.parametrize("real", [False, True])
def test_gradients_of_complex_gradients(k: int, real: bool) -> None:
    def program(lib: Any, log: Log) -> Any:
        dtype = lib.float64 if real else lib.complex128
        x = lib.tensor([0.5, 0.7] if real else [0.5 + 0.3j, -0.7 + 0.2j], dtype=dtype)
        x.requires_grad_()
        y = lib.tensor([0.2 - 0.9j, 1.1 + 0.4j], dtype=lib.complex128, requires_grad=True)
        out = COMPLEX[k](lib, x, y)
        size = (out * (1.3 - 0.4j)).sum().abs()
        firsts = lib.autograd.grad(size, [x, y], create_graph=True, allow_unused=True)
        again = sum((g * g.conj()).real.sum() for g in firsts if g is not None)
        seconds = lib.autograd.grad(again, [x, y], allow_unused=True)
        log.gradients(*[g for g in (*firsts, *seconds) if g is not None])
        for graph in (True, False):
            (g,) = lib.autograd.grad(
                COMPLEX[k](lib, x, y).sum(), y, 1j * lib.ones(()), False, graph
            )
            log(g.is_conj(), None if g.grad_fn is None else g.grad_fn.name())

    if real and k == 6:
        return  # vdot and lerp want one dtype
    assert_equal(run(program, leafax), run(program, torch), "first run")


@pytest.mark.parametrize("base", [0, -2.0, 2j, [0.0, -1.0, 2.0], [0, -1, 2], [1j, 0, -2]], ids=str)
@pytest.mark.parametrize("exponent", [[-1.0, 0.0, 2.0], [-1.0, 0.5 + 1j, 0.0]], ids=str)
def test_gradients_of_exponents(base: Any, exponent: Any) -> None:
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor(base) if isinstance(base, list) else base
        y = lib.tensor(exponent, requires_grad=True)
        out = x**y
        (g,) = lib.autograd.grad(out, y, lib.arange(1.0, 4.0).to(out.dtype), create_graph=True)
        log(out, g)

    assert_equal(run(program, leafax), run(program, torch), "first run")


@pytest.mark.parametrize("included", [True, False])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_products_of_zeros_have_no_second_derivative(included: bool) -> None:
    for t in (torch, leafax):  # each warns once
        t.ones(1).index_reduce(0, t.tensor([0]), t.ones(1), "prod")

    @same
    def program(torch: Any, log: Log) -> Any:
        torch.set_warn_always(False)  # the formulas call it again
        for data in ([2.0, 3.0, 0.5], [0.0, 3.0, 0.5], [0.0, 3.0, 0.0]):
            x = torch.tensor([1.5, 4.0], dtype=torch.float64, requires_grad=True)
            src = torch.tensor(data, dtype=torch.float64, requires_grad=True)
            at = torch.tensor([0, 1, 0])
            for op in (torch.scatter_reduce, torch.index_reduce):
                y = op(x, 0, at, src, "prod", include_self=included)
                log(y.grad_fn.name(), y.detach())
                grads = torch.autograd.grad(y.sum(), (x, src), create_graph=True)
                log(grads[0].detach(), grads[1].detach())
                with log.catch():
                    second = torch.autograd.grad(grads[1].sum(), (x, src), allow_unused=True)
                    log([None if g is None else g.tolist() for g in second])


def test_what_was_written_over_has_a_gradient_without_history() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for write in ("zero_", "fill_", "number"):
            b, value = torch.ones(2, requires_grad=True), torch.tensor(3.0, requires_grad=True)
            d = b * 2
            if write == "number":
                d.fill_(4.0)
            else:
                getattr(d, write)(*([value] if write == "fill_" else []))
            inputs = (b, value) if write == "fill_" else (b,)
            grads = torch.autograd.grad((d * d).sum(), inputs, create_graph=True)
            log(grads, [g.requires_grad for g in grads])
            log.attempt(lambda g=grads[0], b=b: torch.autograd.grad(g.sum(), b))


def test_a_number_in_a_formula_stays_one_in_its_gradients() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def names(fn: Any) -> Any:
            return fn and (fn.name(), [names(f) for f, _ in fn.next_functions])

        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        for f in (lambda x: x.pow(3).sum(), lambda x: x.pow(2).mean()):
            g = f(x)
            for _ in range(3):
                (g,) = torch.autograd.grad(g.sum(), x, create_graph=True)
                log.gradients(g.detach())
                log(names(g.grad_fn))


def test_after_a_look_gradients_depend_on_the_same() -> None:
    """A gradient depends on the same tensors, even if values were read before."""
    start = [[[0.5, -1.5], [2.0, 0.25]], [[1.5, 0.75], [-0.5, 1.0]], [[2.5, -0.25], [1.25, -2.0]]]

    def program(lib: Any, see: Any) -> None:
        for looks in (False, True):
            a, b, c = (lib.tensor(x, dtype=lib.float64, requires_grad=True) for x in start)
            for made in (
                lib.addbmm(a, b[None], c[None]), lib.addmv(a[:, 0], b, c[:, 0]), a.sort()[0],
                lib.addr(a, b[0], c[0]), a.cummax(0)[0], a[0, 0].cummax(0)[0], a.topk(1)[0],
                a.copysign(b), a.div(b, rounding_mode="floor"),
            ):  # fmt: skip
                if looks:
                    made.tolist()
                found = lib.autograd.grad(
                    made.sum(), (a, b, c), create_graph=True, allow_unused=True
                )
                see([g is not None and g.requires_grad for g in found])
                twice = sum((g * g).sum() for g in found if g is not None)
                if twice.requires_grad:
                    see.gradients(*lib.autograd.grad(twice, (a, b, c), allow_unused=True))

    same(program)


@pytest.mark.parametrize("frozen", ["", "x", "w", "b", "xw", "xb"])
@pytest.mark.parametrize("call", [
    "F.conv1d(x, w, b)", "F.layer_norm(x, (4,), w[0, 0], b)", "F.prelu(x, b[:3])",
    "F.batch_norm(x, None, None, w[0, 0, :3], b[:3], True)", "lib.frexp(x)[0]",
    "lib.nextafter(x, x.detach() + 1)",
    "x.scatter_reduce(2, lib.zeros(1, 3, 4).long(), x.detach(), 'amax')",
])  # fmt: skip
def test_gradients_of_one_node_require_grad_together(call: str, frozen: str) -> None:
    """One node gives all of a convolution's gradients, also that of its bias."""

    @same
    def program(lib: Any, log: Log) -> None:
        made = {
            name: lib.arange(1.0, n + 1, dtype=lib.float64).view(shape).requires_grad_()
            for name, n, shape in (("x", 12, (1, 3, 4)), ("w", 48, (4, 3, 4)), ("b", 4, (4,)))
        }
        leaves = [t for name, t in made.items() if name not in frozen]
        for name in frozen:
            made[name].requires_grad_(False)
        out = eval(call, {"lib": lib, "F": lib.nn.functional, **made})
        if not out.requires_grad:
            return
        found = lib.autograd.grad(out.sum(), leaves, create_graph=True, allow_unused=True)
        log([g is not None and g.requires_grad for g in found])
        if "conv1d" in call and not frozen:
            log([g.grad_fn.name() for g in found])


AUTOCAST: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul": lambda lib, x, w: x * w,
    "mm": lambda lib, x, w: x @ w,
    "exp": lambda lib, x, w: (x @ w).exp(),
    "add": lambda lib, x, w: (x @ w) + x,
    "addmm": lambda lib, x, w: lib.addmm(x, x, w),
    "cat": lambda lib, x, w: lib.cat([x @ w, x]),
    "relu": lambda lib, x, w: lib.relu(x[None] @ w).sum(1),
}


@pytest.mark.parametrize("name", AUTOCAST)
@pytest.mark.parametrize("inside", [False, True])
def test_the_graph_of_a_gradient_of_what_autocast_cast(name: str, inside: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        x = torch.tensor([[1.0, 0.5], [0.25, 2.0]], requires_grad=True)
        w = torch.tensor([[0.5, 1.0], [-1.0, 0.75]], requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = AUTOCAST[name](torch, x, w)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=inside):
            found = torch.autograd.grad(y, [x, w], torch.ones_like(y), create_graph=True)
        for g in found:
            log(described(g.grad_fn))
            log.gradients(g)
        again = torch.autograd.grad(sum((g**2).sum() for g in found), [x, w], allow_unused=True)
        log.gradients(*[g for g in again if g is not None])


def test_the_warning_of_cycles_comes_when_backward_is_done() -> None:
    def program(lib: Any, log: Log) -> None:
        x = lib.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.register_hook(lambda g: warnings.warn("a hook's own", stacklevel=1))
        y.backward(create_graph=True)

    assert_equal(run(program, leafax), run(program, torch), "the order of warnings")
