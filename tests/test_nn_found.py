"""What a comparison of `nn.functional` and optimizers with PyTorch found to be different."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sameness import same

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
