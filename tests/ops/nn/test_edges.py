"""Differences once found between `nn.functional`, optimizers and those of PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from helpers.sameness import same

import leafax

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("shape", "size", "mode", "antialias"),
    [
        ((1, 2, 8), (16,), "linear", False),
        ((1, 1, 5, 8), (10, 6), "bilinear", False),
        ((1, 1, 5, 5), (5, 9), "bilinear", False),
        ((1, 1, 5, 8), (10, 6), "bicubic", False),
        ((1, 1, 3, 4, 5), (6, 3, 7), "trilinear", False),
        ((1, 1, 5, 8), (2, 3), "bilinear", True),
        ((1, 1, 5, 8), (10, 3), "bicubic", True),
        ((1, 1, 5, 8), (3, 3), "area", False),
        ((1, 1, 2, 25), (2, 2), "area", False),
        ((1, 1, 1), (30,), "linear", False),
    ],
)
@pytest.mark.parametrize("bad", [NAN, INF, 1.0])
def test_a_bad_number_stays_where_its_window_is(
    shape: tuple[int, ...], size: tuple[int, ...], mode: str, antialias: bool, bad: float
) -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        x = lib.arange(math.prod(shape), dtype=lib.float64).sin()
        y = x.clone()
        y[0] = bad
        for values, slope in ((y, 1.0), (x, bad)):
            leaf = values.reshape(shape).requires_grad_()
            out = lib.nn.functional.interpolate(leaf, size, mode=mode, antialias=antialias)
            grad = lib.arange(out.numel(), dtype=lib.float64).cos()
            grad[1] = slope
            out.backward(grad.reshape(out.shape))
            log(out.detach(), leaf.grad)


def test_resampling_maps_and_differentiates_twice() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F = lib.nn.functional
        x = lib.arange(48, dtype=lib.float64).reshape(3, 1, 2, 8).sin()
        log(lib.func.vmap(lambda v: F.interpolate(v[None], (5, 7), mode="bilinear"))(x) + 0)
        both = lib.func.jvp(lambda v: F.interpolate(v, (5, 7), mode="bicubic"), (x,), (x.cos(),))
        log(*(t + 0 for t in both))
        x.requires_grad_()
        total = (F.adaptive_avg_pool2d(x, (2, 3)) ** 3).sum()
        (grad,) = lib.autograd.grad(total, x, create_graph=True)
        log.gradients(lib.autograd.grad((grad**2).sum(), x)[0])


def test_embedding_bag_takes_the_first_maximum() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        bag = lib.nn.functional.embedding_bag
        w = lib.tensor([[1.0, 5.0], [3.0, 5.0], [3.0, 2.0]], requires_grad=True)
        out = bag(lib.tensor([[0, 1, 2], [2, 1, 1], [0, 0, 0]]), w, mode="max", padding_idx=0)
        log(out.detach())
        bag(lib.tensor([[0, 1, 2], [2, 1, 1]]), w, mode="max").sum().backward()
        log(w.grad)
        bad = lib.tensor([[NAN, 1.0], [2.0, NAN], [-INF, 3.0]])
        for rows in ([[0, 1]], [[1, 0]], [[2, 1, 0]]):
            log(bag(lib.tensor(rows), bad, mode="max"))
        log(bag(lib.tensor([0, 1, 2, 0]), bad, lib.tensor([0, 2, 2]), mode="max"))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offsets", [(0, 3, 3), (0, 2, 4), (0, 0)])
def test_embedding_bag_that_ends_early(mode: str, dtype: str, offsets: tuple[int, ...]) -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        w = lib.arange(10, dtype=getattr(lib, dtype)).reshape(5, 2).requires_grad_()
        for padding in (None, 1):
            out = lib.nn.functional.embedding_bag(
                lib.arange(5), w, lib.tensor(offsets), mode=mode, include_last_offset=True,
                padding_idx=padding,
            )  # fmt: skip
            log(out.detach())


def test_attention_with_a_mask_beside_causality() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        attend = lib.nn.functional.scaled_dot_product_attention
        q = lib.arange(24.0).reshape(1, 2, 3, 4).sin()
        mask = lib.tensor([[0.0, 1, 2], [1, 0, -INF], [1, 2, 3]])
        log(attend(q, q, q * 2, mask, is_causal=True), attend(q, q, q, mask > 0.5, is_causal=True))
        log.attempt(attend, q[0], q[0], q[0], mask, is_causal=True)
        log.attempt(attend, q, q, q[..., :2], mask, is_causal=True)
        log.attempt(attend, q, q, q, mask.clone().requires_grad_(), is_causal=True)
        log(attend(q[..., :0], q[..., :0], q), attend(q[0, :, :, :0], q[0, :, :, :0], q[0]))


def test_gradient_of_softplus_of_no_slope() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        for beta in (0, 1, -2, 0.5):
            x = lib.tensor([-1.0, 0.0, 2.0, 50.0, NAN], requires_grad=True)
            y = lib.nn.functional.softplus(x, beta=beta)
            (grad,) = lib.autograd.grad(y.sum(), x, create_graph=beta == 0.5)
            log(y.detach(), grad.detach())
        log.gradients(lib.autograd.grad(grad.sum(), x)[0])


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gradient_of_an_impossible_alignment(zero: bool, reduction: str) -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        logs = lib.arange(48, dtype=lib.float64).reshape(6, 2, 4).sin().log_softmax(2)
        logs.requires_grad_()
        loss = lib.nn.functional.ctc_loss(
            logs, lib.tensor([[3, 1, 1], [1, 2, 3]]), (3, 5), (3, 3), reduction=reduction,
            zero_infinity=zero,
        )  # fmt: skip
        log(loss.detach())
        loss.sum().backward()
        log.gradients(logs.grad)


def test_embedding_leaves_rows_of_nan_alone() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        w = lib.tensor([[NAN, 5.0], [3.0, 4.0], [INF, 1.0], [0.1, 0.1], [NAN, 9.0]])
        log(lib.nn.functional.embedding(lib.tensor([0, 1, 2, 3]), w, max_norm=1.0), w)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_with_the_probabilities_of_no_batch(reduction: str) -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        x = lib.zeros(0, 3, requires_grad=True)
        loss = lib.nn.functional.cross_entropy(x, lib.zeros(0, 3), reduction=reduction)
        log(loss)
        loss.sum().backward()
        log(x.grad)


def test_adaptive_average_of_all_is_a_mean() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F = lib.nn.functional
        for rank in range(1, 6):
            x = lib.arange(float(2 * 3 ** (rank - 1))).reshape([2] + [3] * (rank - 1))
            for size in (1, (1, 1), (1, 1, 1)):
                log.attempt(F.adaptive_avg_pool2d, x, size)
                log.attempt(F.adaptive_avg_pool3d, x, size)
        log(F.adaptive_avg_pool2d(lib.ones(2, 3, 0, 4), 1))
        log.attempt(F.adaptive_avg_pool2d, lib.ones(1, 2, 2, dtype=lib.int64), 1)


def test_pools_of_integers_and_booleans() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F = lib.nn.functional
        log(F.max_pool1d(lib.tensor([[1, 3, 2, 4]]), 2, return_indices=True))
        log.attempt(F.max_pool1d, lib.tensor([[1, 3, 2, 4]]), 2)
        for dtype in (lib.bool, lib.uint8, lib.complex64, lib.int64):
            x = lib.ones(1, 4, 4, 4).to(dtype)
            for pool in (F.avg_pool2d, F.avg_pool3d, F.max_pool2d, F.max_pool3d):
                log.attempt(pool, x, 2)
            log.attempt(F.avg_pool1d, x[0], 2)
            log.attempt(F.max_pool2d, x, 2, return_indices=True)
            log.attempt(F.max_pool1d, x[0], 2, return_indices=True)


def test_sizes_by_tensors_and_ratios() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F, T = lib.nn.functional, lib.tensor
        x = lib.arange(8.0).reshape(1, 1, 8)
        log(F.adaptive_max_pool1d(x, T(2)), F.adaptive_max_pool2d(x[None], (T(1), 2)))
        log.attempt(F.adaptive_max_pool2d, x[None], T(2))
        log.attempt(F.adaptive_max_pool1d, x, T(2.0))
        v = lib.ones(1, 8, 3, 3, 3)
        for ratio in ((0.5,) * 4, (0.5,) * 3, (0.5,) * 2, (0.5,), 0.5):
            log.attempt(F.fractional_max_pool3d, v, 2, output_ratio=ratio)
        for ratio in ((0.5,) * 3, (0.5,) * 2):
            log.attempt(F.fractional_max_pool2d, v[0], 2, output_ratio=ratio)


def test_circular_padding_of_what_is_empty() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        for shape, by in (((1, 2, 4), (0, -4)), ((1, 2, 4), (-2, -2)), ((2, 0, 3), (1, 1))):
            padded = lib.nn.functional.pad(lib.ones(shape), by, "circular")
            log(tuple(padded.shape))
        log.attempt(lib.nn.functional.pad, lib.ones(2, 3, 0), (1, 1), "circular")


def test_losses_norms_and_dropouts_refuse() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F, x = lib.nn.functional, lib.arange(24.0).reshape(2, 3, 4)
        log.attempt(F.soft_margin_loss, lib.zeros(3, 1), lib.ones(1, 3))
        log.attempt(F.soft_margin_loss, lib.zeros(3, 1), lib.ones(3), reduction="none")
        log.attempt(F.poisson_nll_loss, lib.tensor([0.5]), 0.5)
        log.attempt(F.poisson_nll_loss, 0.5, lib.tensor([0.5]))
        log.attempt(F.instance_norm, x, lib.zeros(3))
        log.attempt(F.instance_norm, x, None, lib.zeros(3))
        for drop in (F.dropout, F.dropout1d, F.alpha_dropout, F.feature_alpha_dropout):
            for training in (True, False):
                log.attempt(drop, x, NAN, training)


def test_kernels_of_no_size() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F = lib.nn.functional
        for dims in (1, 2, 3):
            x = lib.ones([1, 2] + [4] * dims)
            for transposed in ("", "_transpose"):
                conv = getattr(F, f"conv{transposed}{dims}d")
                log.attempt(conv, x, lib.ones([2, 2] + [1] * (dims - 1) + [0]))
                log.attempt(conv, x, lib.ones([2, 0] + [1] * dims))
            log.attempt(F.local_response_norm, x, 0)


def test_max_pool_with_indices_refuses_in_its_words() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        pool, x = lib.nn.functional.max_pool1d, lib.ones(1, 2, 6)
        for numbers in (
            {"kernel_size": (2, 2)}, {"kernel_size": 0}, {"kernel_size": 2, "stride": (1, 1)},
            {"kernel_size": 2, "padding": 2}, {"kernel_size": 9}, {"kernel_size": 2, "stride": 0},
            {"kernel_size": 2, "padding": (1, 1)}, {"kernel_size": 2, "dilation": (1, 1)},
            {"kernel_size": 3, "padding": 2, "dilation": 2},
        ):  # fmt: skip
            log.attempt(pool, x, return_indices=True, **numbers)
        for shape in ((6,), (1, 2, 0), (1, 0, 6), (1, 1, 2, 6)):
            log.attempt(pool, lib.ones(shape), 2, return_indices=True)


def test_dropout_keeps_a_memory_format() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        F = lib.nn.functional
        for drop, dims in ((F.dropout2d, 2), (F.dropout3d, 3), (F.feature_alpha_dropout, 2)):
            last = lib.channels_last if dims == 2 else lib.channels_last_3d
            x = lib.ones([2, 3] + [4] * dims).contiguous(memory_format=last)
            log(*(tuple(drop(y, 0.5, True).stride()) for y in (x, x.transpose(0, 1))))


def test_node_of_a_sampled_volume() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        for dims in (2, 3):
            x = lib.ones([1, 1] + [3] * dims, requires_grad=True)
            grid = lib.zeros([1] + [2] * dims + [dims])
            out = lib.nn.functional.grid_sample(x, grid, align_corners=False)
            log(out.grad_fn.name())


def test_words_of_optimizers() -> None:
    @same
    def program(lib: Any, log: Any) -> Any:
        p = lib.ones(2, requires_grad=True)
        p.grad = lib.ones(2)
        log.attempt(lambda: lib.optim.Optimizer([p], {}).step())
        for kind in (lib.optim.SGD, lib.optim.Adam):
            optimizer = kind([p], lr=0.1)
            optimizer.register_step_pre_hook(lambda *args: 5)
            log.attempt(optimizer.step)


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 2, 3, 4), (1, 2, 2, 3, 2)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_scales_that_come_to_the_same_or_twice_the_length(mode: str, shape: Any) -> None:
    """Gradients are those of what was read; PyTorch's of signals and volumes may be others'."""
    for scale in (1.1, 1.3, 1.7, 2.0, 2.05, 2.125, 2.3, 2.6):
        x = torch.arange(float(math.prod(shape))).reshape(shape)
        want = torch.nn.functional.interpolate(x, scale_factor=scale, mode=mode)
        ours = leafax.from_numpy(x.numpy()).requires_grad_()
        got = leafax.nn.functional.interpolate(ours, scale_factor=scale, mode=mode)
        assert got.tolist() == want.tolist()
        got.sum().backward()
        counts = torch.bincount(want.flatten().long(), minlength=x.numel()).reshape(shape)
        assert ours.grad.tolist() == counts.tolist()
