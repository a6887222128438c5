"""Programs of transforms in which leafax once differed from torch, found by random programs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import same

WRITES = (
    "p.mul_(2)", "p.detach().mul_(2)", "p.view(-1).mul_(2)", "p[0].mul_(2)", "p[0] = 1.0",
    "p.zero_()", "p[:2].detach().add_(1)", "p.copy_(p * 2)", "torch.relu_(p)",
)  # fmt: skip
TURNS = ("p.unsqueeze_(0)", "p.unsqueeze_(-1)", "p.t_()", "p.t_().mul_(2)", "p.squeeze_(0)")
START = (
    "x = torch.tensor([[1.5, -0.5, 2.0], [0.25, 3.0, -1.0]], dtype=torch.float64)",
    "from_outside = x * 3",
)


def compare(*lines: str) -> None:
    """Compare what the lines show by `see`; an error ends its line only, and is shown."""

    def program(lib: Any, log: Any) -> None:
        warnings.filterwarnings("ignore", "There is a performance drop")  # torch has no rule
        space: dict[str, Any] = {"torch": lib, "func": lib.func}
        space["see"] = lambda *xs: [log(_values(lib, x)) for x in xs]
        for line in (*START, *lines):
            try:
                exec(line, space)
            except (RuntimeError, ValueError, TypeError, IndexError) as e:
                log(e)

    same(program)


def _values(lib: Any, x: Any) -> Any:
    """Return the compared parts of a tensor; other tests compare the nodes."""
    if not isinstance(x, lib.Tensor):
        return x
    kind = str(x.dtype).split(".")[-1]
    values = np.round(np.array(x.detach().tolist()), 9).tolist()
    return kind, tuple(x.shape), x.requires_grad, x.is_leaf, values


def _function(body: str, result: str) -> str:
    return f"def f(p):\n    {body}\n    return {result}"


@pytest.mark.quick(3)
@pytest.mark.parametrize("mode", ["torch.no_grad()", "torch.enable_grad()"])
@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_to_an_example(write: str, mode: str) -> None:
    """Behind autograd's back it is written to a leaf, too; else that raises in the function."""
    caught = (
        "def f(p):\n    try:\n"
        f"        with {mode}: {write}\n"
        "    except RuntimeError as e: see(str(e))\n"
        "    return p * 2"
    )
    for batch in ("x", "x.requires_grad_()", "x.requires_grad_() * 1"):
        compare(
            f"b = {batch}",
            caught,
            "o = func.vmap(f)(b)",
            "see(o, b, b._version)",
            "(o * o).sum().backward() if o.requires_grad else None",
            "see(None if x.grad is None or not x.grad.any() else x.grad)",
        )


@pytest.mark.quick(3)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("dim", [0, 1])
def test_an_example_turned_in_place_turns_its_batch(turn: str, dim: int) -> None:
    for batch in ("x", "x[None]", "x.repeat(2, 1, 1)"):
        compare(
            f"b = ({batch}).clone()",
            _function(turn, "p * 2"),
            f"see(func.vmap(f, in_dims={dim})(b))",
            "see(b, b._version)",
        )


@pytest.mark.quick(4)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("to", ["x.requires_grad_()", "x.requires_grad_() * 1", "x"])
def test_arguments_are_leaves_to_their_transform(write: str, to: str) -> None:
    """Also where they have a history outside of it."""
    compare(
        f"b = {to}",
        _function(write, "(p * p).sum()"),
        "see(func.grad(f)(b), b)",
        "see(func.vjp(f, b)[0], b)",
        "see(func.grad(lambda q: func.grad(f)(q).sum())(b), b)",
        "see(func.vmap(func.grad(f))(b), b)",
        "see(func.grad(lambda q: func.vmap(f)(q).sum())(b), b)",
    )


def test_what_is_written_behind_a_view_of_an_argument() -> None:
    compare(
        "x.requires_grad_()",
        _function("v = p.view_as(p); v.detach().mul_(2)", "(v * v).sum()"),
        "see(func.grad(f)(x), x)",
        "see(func.grad(f)(x * 1))",
        "def g(p):\n    see(p._is_view(), p._base is None)\n    return p.sum()",
        "func.grad(g)(x * 1)",
    )


@pytest.mark.exhaustive
def test_writes_to_what_outer_maps_do_not_map() -> None:
    """Beside results that they do."""
    compare(
        "x = torch.arange(24.0, dtype=torch.float64).reshape(2, 2, 3, 2) / 7",
        "f = lambda p: (p.norm(dim=0).sin() * p).sum()",
        "see(func.vmap(func.vmap(func.hessian(f), in_dims=-1))(x[:, :, 0]))",
        "b = torch.ones(3, 2)",
        "def g(p, q):\n    p.mul_(2)\n    return p * q",
        "see(func.vmap(lambda q: func.vmap(g)(b, q))(x[:, 0]))",
        "see(b)",
    )


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "f",
    [
        "(p + 0).fill_(0.5)", "(p + 0).copy_(torch.ones(3))", "(p + 0).copy_(w)", "p.detach() * w",
        "(p.sin(), w * p.detach())", "func.vmap(lambda q: (q + 0).zero_())(p)",
        "func.vmap(lambda q: q.detach() * w[0])(p)", "(p * 1).zero_() + w", "(p, w)",
        "p.argmax() * w", "torch.where(p > 0, w, 0.0)",
    ],
)  # fmt: skip
def test_gradients_are_zero_or_none_by_the_graph(f: str) -> None:
    """Of what a mapped function overwrites they are zero, of what it detaches None."""
    compare(
        "x.requires_grad_()",
        "w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)",
        f"o = func.vmap(lambda p: {f})(x)",
        "o = o if isinstance(o, tuple) else (o,)",
        "sum(y.sum() for y in o).backward()",
        "see(x.grad, w.grad)",
    )


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_pairwise_distance_of_numbers(p: float) -> None:
    lines = []
    for keep in (False, True):
        lines += [
            f"d = torch.nn.functional.pairwise_distance(a, b, float('{p}'), keepdim={keep})",
            "see(d)",
            "see(torch.autograd.grad(d, a))",
        ]
    compare(
        "a = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)",
        "b = torch.tensor(0.25, dtype=torch.float64)",
        *lines,
    )


NESTED = "h = lambda a: func.jvp(lambda p: (p**4).mean(), (a,), (a.cos(),))[1]"


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "call",
    [
        "func.jacfwd(h)(x[:, 0])", "func.hessian(h)(x[:, 0])", "func.jacrev(func.jacrev(h))(x[0])",
        "func.vmap(func.hessian(h), in_dims=1)(x)", "func.vmap(func.jacfwd(h), in_dims=1)(x)",
        "func.vmap(func.jacrev(func.jacrev(h)), in_dims=1)(x)", "func.hessian(h)(x.t())",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tracked", [False, True])
def test_tangents_laid_out_as_what_they_belong_to(call: str, tracked: bool) -> None:
    """They keep the tangents of outer levels, and their history."""
    compare(
        f"x.requires_grad_({tracked})",
        NESTED,
        f"o = {call}",
        "see(o)",
        "o.sum().backward() if o.requires_grad else None",
        "see(x.grad)",
    )


def test_the_node_of_a_tangent_that_is_laid_out_anew() -> None:
    compare(
        "fw = torch.autograd.forward_ad",
        "c = x.requires_grad_() * 2",
        "with fw.dual_level():\n"
        "    for t in (x, c):\n"
        "        d = fw.unpack_dual(fw.make_dual(torch.ones(3, 2).double().t(), t)).tangent\n"
        "        see(d.grad_fn.name(), d._is_view(), d._version, d.stride(), d)",
    )


def test_what_does_not_differ_is_told_by_output() -> None:
    """Of an inner map, or of a pushforward whose tangents alone differ."""
    compare(
        "def f(p):\n"
        "    v = func.vmap(lambda z: torch.searchsorted(z.sort()[0], z) * 1.0)(p)\n"
        "    return (v * v).mean(), v",
        "see(*func.jacfwd(f, has_aux=True)(x))",
        "see(*func.jacfwd(func.vmap(lambda p, q: (p.sin(), q)), has_aux=True)(x, x * 2))",
        "see(*func.jacfwd(func.vmap(lambda p, q: (p.sin() * q, p)), has_aux=True)(x, x * 2))",
    )


def test_which_error_a_write_to_one_of_many_views_of_an_argument_raises() -> None:
    compare(
        "def g(p):\n    p.view(p.shape).chunk(2)[0].mul_(2)\n    return p.sum()",
        "func.grad(lambda a: func.vmap(g)(a).sum())(x)",
        "func.grad(g)(x[0])",
        "func.linearize(g, x.requires_grad_())",
        "def g(p):\n    p.mul_(2)\n    return p.sum()",
        "func.linearize(g, x)",
    )


@pytest.mark.parametrize(
    "write",
    [
        "d.as_strided((2,), (1,)).mul_(2)", "d.view(-1)[1:].as_strided((2,), (1,)).mul_(2)",
        "d.fill_diagonal_(1.0)",
        "d.view(-1).as_strided((2, 2), (3, 1))[0].mul_(3)", "d.t().as_strided((2,), (1,)).zero_()",
    ],
)  # fmt: skip
def test_writes_through_as_strided_reach_the_tangent(write: str) -> None:
    compare(
        "fw = torch.autograd.forward_ad",
        "with fw.dual_level():\n"
        "    d = fw.make_dual(x * 1, torch.ones(2, 3).double())\n"
        f"    {write}\n"
        "    see(*fw.unpack_dual(d), *fw.unpack_dual(d.sin()))",
        f"def f(d):\n    d = d.clone()\n    {write}\n    return d.sin()",
        "see(func.jacfwd(f)(x), func.vmap(func.jacfwd(f))(torch.stack([x, x * 2])))",
    )


@pytest.mark.parametrize(
    "write",
    [
        "q.as_strided((2,), (1,)).mul_(2)", "q.fill_diagonal_(2.0)", "p.fill_diagonal_(2.0)",
        "q.t().as_strided((2,), (1,)).mul_(2)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("batch", ["x[:, :, None] * x", "(x[:, :, None] * x).requires_grad_() * 1"])
def test_writes_through_as_strided_reach_the_example(write: str, batch: str) -> None:
    compare(
        "x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3, 1) - 2.5",
        f"b = {batch.replace('x[:, :, None] * x', 'x * x.mT')}",
        f"def f(p):\n    q = p * 1\n    {write}\n    return q.sin() + p",
        "see(func.vmap(f)(b), b)",
    )


def test_tangents_of_outer_maps_that_do_not_differ_may_be_written_to() -> None:
    compare(
        "def f(p):\n    v = p.max(0)[0].clone()\n"
        "    v.index_fill_(0, torch.tensor([0]), 2.0)\n    return v * v",
        "see(func.jacfwd(func.jacfwd(f))(x))",
        "see(*func.jvp(func.jacfwd(f), (x,), (x.cos(),)))",
        "def f(d):\n    d = d.clone()\n    d[0].mul_(3)\n    return d.sin()",
        "see(func.vmap(func.jacfwd(f))(torch.stack([x, x * 2])))",
    )


FUNCTION = (
    "class A(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(a): return a * 2\n"
    "    @staticmethod\n    def setup_context(ctx, i, o): pass\n"
    "    @staticmethod\n    def backward(ctx, g): return g * 2\n"
    "    @staticmethod\n    def jvp(ctx, t): return t * 2"
)


def test_functions_without_a_rule_are_refused_inside_of_any_map() -> None:
    compare(
        FUNCTION,
        "see(func.vmap(lambda a: a + A.apply(x[0]))(x))",
        "see(func.jacfwd(A.apply)(x))",
        "see(func.vmap(lambda b: func.grad(lambda a: A.apply(a).sum())(x[0]) * b)(x))",
        "see(func.jacrev(A.apply)(x))",
        "class B(A):\n    generate_vmap_rule = True",
        "see(func.vmap(lambda a: a + B.apply(x[0]))(x))",
        "see(func.jacfwd(B.apply)(x))",
    )


def test_batched_gradients_of_no_dimension() -> None:
    compare(
        "x.requires_grad_()",
        "torch.autograd.grad((x * 2).sum(), x, is_grads_batched=True)",
        "torch.autograd.grad((x * 2).sum(), x, torch.tensor(1.0), is_grads_batched=True)",
    )


@pytest.mark.parametrize(
    "inner",
    [
        "func.grad(lambda q: (p * q**2).sum())(y)", "func.vjp(lambda q: p * q.sin(), y)[1](p)[0]",
        "func.grad_and_value(lambda q: (p * q.sin()).sum())(y)[1]",
    ],
)  # fmt: skip
def test_what_an_inner_transform_differentiated_is_a_constant(inner: str) -> None:
    compare(
        "x, y = x[0], x[1]", f"def f(p): return ({inner} * p.cos()).sum()",
        "see(func.grad(f)(x), func.hessian(f)(x))",
        "y.requires_grad_()", "see(func.grad(f)(x))",
    )  # fmt: skip


@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "hessian"])
def test_arguments_by_name(transform: str) -> None:
    compare(
        "def f(p, k): return (p * k).sum()", f"see(func.{transform}(f)(x, k=2.0))",
        f"see(func.{transform}(f)(p=x, k=2.0))",
    )  # fmt: skip


def test_a_second_cotangent_is_none() -> None:
    compare(
        "_, pull = func.vjp(lambda p: (p * 2, p), x)", "pull(x, x)", "pull((x, x), x)",
        "see(*pull((x, x), None))", "see(*pull((x, x), False))",
    )  # fmt: skip


@pytest.mark.parametrize("call", [
    "torch.ormqr(m, m[0], m)", "torch.geqrf(m)[0]",
    "torch.grid_sampler_3d(v, torch.zeros(1, 2, 2, 2, 3), 0, 0, False)",
    "torch.index_reduce(p, 0, torch.tensor([0]), p[:1], 'amax')", "torch.binomial(p, p)",
    "torch.native_layer_norm(p, (3,), None, None, 1e-5)", "torch.linalg.lu(m)[0]",
    "torch.native_batch_norm(p, None, None, None, None, True, 0.1, 1e-5)",
])  # fmt: skip
def test_tangents_of_what_has_no_formula(call: str) -> None:
    """Neither do constants have any."""
    start = "m, v = p[:, :2] @ p[:, :2].t() + torch.eye(2), p[:1, :1].view(1, 1, 1, 1, 1)"
    compare(
        f"def f(p):\n    {start}\n    return {call}",
        "found = torch.func.jvp(f, (x,), (x * x,))",
        "for t in vars().get('found', ()): see(*(t if isinstance(t, tuple) else (t,)))",
    )


def test_what_a_mask_of_all_examples_selects() -> None:
    compare(
        "mask = torch.tensor([True, False, True])",
        "see(torch.vmap(lambda p: torch.masked_select(p, mask))(x))",
        "see(torch.vmap(lambda p: torch.masked_select(p, mask[:1]))(x))",
        "see(torch.func.grad(lambda p: torch.masked_select(p, mask).sum())(x))",
    )
