"""Graphs of functions that PyTorch makes of other ops: node by node, and gradients through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

Program = Callable[..., Any]


def numbers(lib: Any, *shape: int, by: float = 0.7) -> Any:
    """Irregular values, for any shape."""
    x = lib.arange(float(int(np.prod(shape))), dtype=lib.float64).mul(by).sin()
    return (x + x.mul(3.3).cos().mul(0.1)).reshape(shape)


def chain(node: Any, depth: int = 14) -> Any:
    """The names of a graph's nodes, each with those it leads to."""
    if node is None or not depth:
        return None
    return node.name(), [chain(following, depth - 1) for following, _ in node.next_functions]


def seen(lib: Any, program: Program, shapes: Any) -> tuple[Any, list[np.ndarray]]:
    """The graph, and values: of the result, of gradients, of gradients of these."""
    leaves = [numbers(lib, *s, by=0.7 + i).requires_grad_() for i, s in enumerate(shapes)]
    made = program(lib, *leaves)
    graph = (chain(made.grad_fn), tuple(made.shape), str(made.dtype).split(".")[-1])
    out = lib.view_as_real(made.resolve_conj()) if made.is_complex() else made
    total = (out * numbers(lib, *out.shape, by=0.9)).sum()
    first = lib.autograd.grad(total, leaves, create_graph=True)
    again = sum((g * numbers(lib, *g.shape, by=1.9)).sum() for g in first)
    second = [None] * len(leaves)
    if again.requires_grad:
        second = lib.autograd.grad(again, leaves, allow_unused=True)
    none = [lib.zeros_like(x) if g is None else g for x, g in zip(leaves, second, strict=True)]
    values = [out, *first, *none]
    return (graph, made._is_view()), [v.detach().numpy(force=True) for v in values]


def same(program: Program, *shapes: tuple[int, ...]) -> None:
    theirs, ours = seen(torch, program, shapes), seen(leafax, program, shapes)
    assert theirs[0] == ours[0]
    for x, y in zip(theirs[1], ours[1], strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-7, atol=1e-9)


def f(lib: Any) -> Any:
    return lib.nn.functional


POOLS = {
    "avg_pool1d": lambda lib, x: f(lib).avg_pool1d(x, 3, 2, 1, True, False),
    "max_pool1d": lambda lib, x: f(lib).max_pool1d(x, 3, 2, 1, ceil_mode=True),
    "max_pool1d_indices": lambda lib, x: f(lib).max_pool1d(x, (2,), return_indices=True)[0],
    "adaptive_avg_pool1d": lambda lib, x: f(lib).adaptive_avg_pool1d(x, 3),
    "adaptive_max_pool1d": lambda lib, x: f(lib).adaptive_max_pool1d(x, 3),
    "adaptive_max_indices": lambda lib, x: f(lib).adaptive_max_pool1d(x, 3, return_indices=True)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("shape", [(2, 3, 8), (3, 7)])
def test_pools_of_one_dim(name: str, shape: tuple[int, ...]) -> None:
    same(POOLS[name], shape)


def test_pools_that_autograd_does_not_see() -> None:
    for lib in (torch, leafax):
        x = numbers(lib, 2, 3, 8)
        assert not f(lib).max_pool1d(x, 2)._is_view()
        assert f(lib).avg_pool1d(x, 2)._is_view()
        with lib.no_grad():
            assert not f(lib).max_pool1d(x.requires_grad_(), 2)._is_view()


PLAIN: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {
    "adaptive_avg_pool2d": (lambda lib, x: f(lib).adaptive_avg_pool2d(x, 1), ((2, 3, 4, 5),)),
    "adaptive_avg_pool3d": (lambda lib, x: f(lib).adaptive_avg_pool3d(x, 1), ((2, 3, 2, 4, 5),)),
    "area": (lambda lib, x: f(lib).interpolate(x, 3, mode="area"), ((2, 3, 8),)),
    "area_scale": (
        lambda lib, x: f(lib).interpolate(x, scale_factor=0.5, mode="area"), ((2, 3, 8),)),
    "lp_pool1d": (lambda lib, x: f(lib).lp_pool1d(x + 2, 2, 2), ((2, 3, 8),)),
    "conv1d": (lambda lib, x, w, b: f(lib).conv1d(x, w, b, 2, 1), ((3, 8), (4, 3, 3), (4,))),
    "conv2d": (lambda lib, x, w: f(lib).conv2d(x, w), ((3, 5, 4), (4, 3, 3, 2))),
    "conv2d_same": (
        lambda lib, x, w, b: f(lib).conv2d(x, w, b, padding="same"),
        ((2, 3, 5, 4), (4, 3, 3, 2), (4,))),
    "conv1d_same": (
        lambda lib, x, w: f(lib).conv1d(x, w, padding="same", dilation=3), ((3, 9), (4, 3, 2))),
    "conv_transpose2d": (
        lambda lib, x, w, b: f(lib).conv_transpose2d(x, w, b, 2), ((3, 4, 4), (3, 2, 3, 3), (2,))),
    "instance_norm": (lambda lib, x: f(lib).instance_norm(x), ((2, 3, 8),)),
    "instance_norm_weight": (
        lambda lib, x, w, b: f(lib).instance_norm(x, weight=w, bias=b),
        ((2, 3, 4, 4), (3,), (3,))),
    "instance_norm_running": (
        lambda lib, x, w, b: f(lib).instance_norm(
            x, numbers(lib, 3), numbers(lib, 3) + 2, w, b, False),
        ((2, 3, 4, 4), (3,), (3,))),
    "rms_norm": (lambda lib, x: f(lib).rms_norm(x, (8,)), ((2, 3, 8),)),
    "rms_norm_weight": (
        lambda lib, x, w: f(lib).rms_norm(x, (3, 4), w, 1e-3), ((2, 3, 4), (3, 4))),
    "local_response_norm": (lambda lib, x: f(lib).local_response_norm(x, 2, 0.5), ((2, 3, 8),)),
    "local_response_norm_2d": (
        lambda lib, x: f(lib).local_response_norm(x, 3, 0.5, 0.6, 2), ((2, 3, 4, 5),)),
    "tanhshrink": (lambda lib, x: f(lib).tanhshrink(x), ((2, 3),)),
    "softsign": (lambda lib, x: f(lib).softsign(x), ((2, 3),)),
    "pairwise_distance": (lambda lib, x, y: f(lib).pairwise_distance(x, y), ((4, 3), (4, 3))),
    "pairwise_distance_p": (
        lambda lib, x, y: f(lib).pairwise_distance(x, y, 3.0, 0.1, True), ((2, 4, 3), (3,))),
    "hinge_embedding_loss": (
        lambda lib, x: f(lib).hinge_embedding_loss(x, lib.ones(3, 4)), ((3, 4),)),
    "cosine_embedding_loss": (
        lambda lib, x, y: f(lib).cosine_embedding_loss(x, y, lib.tensor([1.0, -1, 1]), 0.1),
        ((3, 4), (3, 4))),
    "triplet_margin_loss": (
        lambda lib, x, y, z: f(lib).triplet_margin_loss(x, y, z, swap=True),
        ((3, 4), (3, 4), (3, 4))),
    "cross": (lambda lib, x, y: lib.cross(x, y), ((4, 3), (4, 3))),
    "cross_entropy": (
        lambda lib, x, y: f(lib).cross_entropy(x, y, label_smoothing=0.2), ((3, 4), (3, 4))),
    "pairwise_distance_1": (lambda lib, x, y: f(lib).pairwise_distance(x, y, 1), ((3,), (3,))),
}  # fmt: skip


PLAIN |= {
    "matrix_norm_1": (lambda lib, x: lib.linalg.matrix_norm(x, 1), ((2, 3, 4),)),
    "matrix_norm_-inf": (
        lambda lib, x: lib.linalg.matrix_norm(x, -float("inf"), (0, 2), True), ((2, 3, 4),)),
    "matrix_norm_nuc": (lambda lib, x: lib.linalg.norm(x, "nuc"), ((3, 4),)),
    "matrix_norm_2": (lambda lib, x: lib.linalg.matrix_norm(x, 2, (2, 0), True), ((3, 4, 2),)),
    "cond": (lambda lib, x: lib.linalg.cond(x), ((2, 3, 3),)),
    "cond_nuc": (lambda lib, x: lib.linalg.cond(x, "nuc"), ((2, 3, 3),)),
    "matrix_power_1": (lambda lib, x: lib.linalg.matrix_power(x, 1), ((3, 3),)),
    "matrix_power_7": (lambda lib, x: x.matrix_power(7), ((2, 3, 3),)),
    "matrix_power_-3": (lambda lib, x: lib.linalg.matrix_power(x, -3), ((3, 3),)),
    "multi_dot_2": (lambda lib, x, y: lib.linalg.multi_dot([x, y]), ((3,), (3,))),
    "multi_dot_3": (
        lambda lib, x, y, z: lib.linalg.multi_dot([x, y, z]), ((2, 9), (9, 3), (3, 4))),
    "multi_dot_5": (
        lambda lib, a, b, c, d, e: lib.linalg.multi_dot([a, b, c, d, e]),
        ((7,), (7, 2), (2, 9), (9, 3), (3, 4))),
    "tensorinv": (lambda lib, x: lib.linalg.tensorinv(x), ((2, 2, 4),)),
    "tensorsolve": (
        lambda lib, x, y: lib.linalg.tensorsolve(x, y, dims=(0,)), ((4, 2, 2), (2, 2))),
    "inner": (lambda lib, x, y: lib.inner(x, y), ((2, 3), (4, 3))),
    "vecdot": (lambda lib, x, y: lib.linalg.vecdot(x, y, dim=0), ((3, 2), (3, 2))),
    "vecdot_1d": (
        lambda lib, x, y: lib.linalg.vecdot(lib.complex(x, y), lib.complex(y, x)), ((3,), (3,))),
    "ldexp": (lambda lib, x, y: lib.ldexp(x, y), ((2, 3), (3,))),
    "nanmean": (lambda lib, x: x.where(x > 0, float("nan")).nanmean(1, True), ((3, 4),)),
    "take_along_dim": (
        lambda lib, x: lib.take_along_dim(x, lib.tensor([[1], [0]]), 1), ((1, 3),)),
    "take_along_flat": (
        lambda lib, x: lib.take_along_dim(x, lib.tensor([[1], [0]])), ((2, 3),)),
    "quantile": (lambda lib, x: x.quantile(0.3), ((3, 4),)),
    "quantile_of_several": (
        lambda lib, x, q: x.quantile(q.abs() / 2, 0, True, interpolation="linear"),
        ((3, 4), (2,))),
    "quantile_midpoint": (
        lambda lib, x: x.quantile(0.3, 1, interpolation="midpoint"), ((3, 4),)),
    "nanquantile": (
        lambda lib, x: x.where(x > 0, float("nan")).nanquantile(0.7, 0, interpolation="lower"),
        ((3, 4),)),
    "trapezoid": (lambda lib, y: lib.trapezoid(y, dx=2.0, dim=0), ((3, 4),)),
    "trapezoid_x": (lambda lib, y, x: lib.trapezoid(y, x), ((3, 4), (4,))),
    "cumulative_trapezoid": (lambda lib, y: lib.cumulative_trapezoid(y), ((3, 4),)),
    "cumulative_x": (lambda lib, y, x: lib.cumulative_trapezoid(y, x), ((4,), (4,))),
    "gradient": (lambda lib, x: lib.gradient(x, spacing=2.0)[1], ((3, 4),)),
    "cartesian_prod": (lambda lib, x, y: lib.cartesian_prod(x, y), ((3,), (2,))),
    "cov": (lambda lib, x: x.cov(), ((3, 4),)),
    "corrcoef": (lambda lib, x: x.corrcoef(), ((3, 4),)),
}  # fmt: skip


@pytest.mark.quick(9)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.filterwarnings("ignore:Using torch.cross without")
@pytest.mark.parametrize("name", PLAIN)
def test_functions(name: str) -> None:
    program, shapes = PLAIN[name]
    same(program, *shapes)


def test_condition_numbers_in_other_norms() -> None:
    """PyTorch cannot differentiate these: it writes to the inverse that it saved."""
    made = []
    for lib in (torch, leafax):
        x = numbers(lib, 2, 3, 3).requires_grad_()
        out = lib.linalg.cond(x, 1)
        singular = lib.linalg.cond(lib.ones(2, 2), float("inf"))
        made.append((chain(out.grad_fn), out.detach().numpy(), singular.item()))
    assert made[0][0] == made[1][0] and made[0][2] == made[1][2]
    np.testing.assert_allclose(made[0][1], made[1][1])


def test_statistics_of_instance_norm() -> None:
    for dtype in ("float32", "float64"):
        made = []
        for lib in (torch, leafax):
            mean, var = (numbers(lib, 3, by=b).to(getattr(lib, dtype)) for b in (0.3, 0.4))
            x = numbers(lib, 2, 3, 5).to(mean.dtype)
            f(lib).instance_norm(x, mean, var, momentum=0.3)
            made.append((mean.numpy(), var.numpy(), mean._version))
        np.testing.assert_allclose(made[0][0], made[1][0], rtol=1e-5)
        np.testing.assert_allclose(made[0][1], made[1][1], rtol=1e-5)


ORDERED: dict[str, Program] = {
    "kl_div": lambda lib, x, y: f(lib).kl_div(x, y, log_target=True, reduction="sum"),
    "kl_div of numbers": lambda lib, x, y: f(lib).kl_div(x, y, reduction="sum"),
    "poisson_nll_loss": lambda lib, x, y: f(lib).poisson_nll_loss(x, y, full=True),
    "margin_ranking_loss": lambda lib, x, y: f(lib).margin_ranking_loss(x, y, y),
    "cosine_embedding_loss": lambda lib, x, y: f(lib).cosine_embedding_loss(
        x, y, lib.tensor([1, -1, 1, -1])
    ),
    "gradient": lambda lib, x, y: sum(lib.gradient(x)) + sum(lib.gradient(y, edge_order=2)),
    "gradient of points": lambda lib, x, y: sum(
        sum(lib.gradient(x, spacing=(lib.arange(4.0).double() ** 2,) * 2, edge_order=order))
        for order in (1, 2)
    ),
    "trapezoid": lambda lib, x, y: lib.trapezoid(x, y) + lib.trapezoid(y),
    "cumulative_trapezoid": lambda lib, x, y: lib.cumulative_trapezoid(x, y),
    "tensordot": lambda lib, x, y: lib.tensordot(x, y, 1),
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ORDERED)
def test_the_order_that_backward_takes(name: str) -> None:
    def order(lib: Any) -> list[Any]:
        x, y = (numbers(lib, 4, 4, by=by).requires_grad_() for by in (0.7, 1.3))
        out = ORDERED[name](lib, x, y).sum()
        nodes, taken = [out.grad_fn], []
        for node in nodes:
            node.register_prehook(
                lambda g, node=node: taken.append((node.name(), [tuple(t.shape) for t in g]))
            )
            nodes += [n for n, _ in node.next_functions if n is not None and n not in nodes]
        out.backward()
        return [chain(nodes[0]), taken]

    assert order(leafax) == order(torch)
