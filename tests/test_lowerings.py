"""Convolutions computed in several ways: the same values, each way where it is meant."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from leafax.functional import TABLE, lowerings

CONV = {n: TABLE[f"conv{n}d"].fn for n in (1, 2, 3)}
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], bool]] = [
    # input, weight, arguments, whether products are taken on a CPU
    ((2, 8, 2, 2), (5, 8, 3, 3), {"padding": 1}, True),
    ((2, 8, 7, 6), (5, 8, 3, 2), {"stride": (2, 3), "padding": (1, 0), "dilation": (2, 1)}, True),
    ((2, 4, 9, 9), (6, 4, 1, 1), {}, True),
    ((2, 4, 9, 9), (6, 4, 1, 1), {"stride": 2, "padding": 1}, True),
    ((2, 6, 9, 8), (6, 1, 3, 3), {"padding": "same", "groups": 6}, True),
    (
        (2, 3, 9, 8),
        (6, 1, 5, 3),
        {"stride": 2, "padding": 2, "dilation": (1, 2), "groups": 3},
        True,
    ),
    ((2, 4, 9), (3, 4, 3), {"stride": 3}, True),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {}, True),
    ((1, 2, 3, 4, 3), (2, 1, 2, 2, 2), {"groups": 2}, True),
    ((2, 4, 9, 9), (6, 4, 3, 3), {}, False),
    ((2, 4, 2, 2), (6, 2, 2, 2), {"groups": 2}, False),
]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    lowerings(convolution="auto")


@pytest.mark.parametrize("shape, weight, kwargs, by_products", CASES)
def test_every_way_gives_the_same(
    shape: tuple[int, ...], weight: tuple[int, ...], kwargs: Any, by_products: bool
) -> None:
    random = np.random.default_rng(0)
    conv = CONV[len(shape) - 2]
    with jax.enable_x64(True):
        x, w = (jax.numpy.asarray(random.standard_normal(s)) for s in (shape, weight))
        found = {}
        for way in ("auto", "xla"):
            lowerings(convolution=way)

            def run(x: Any, w: Any) -> Any:
                y, pull = jax.vjp(lambda x, w: conv(x, w, None, **kwargs), x, w)
                return y, pull(y)

            text = jax.jit(run).lower(x, w).as_text()
            takes_products = "stablehlo.convolution" not in text
            assert takes_products == (way == "auto" and by_products)
            found[way] = jax.tree.leaves(run(x, w))
    for ours, xlas in zip(found["auto"], found["xla"], strict=True):
        np.testing.assert_allclose(ours, xlas, rtol=1e-12, atol=1e-12)


def test_half_precision_is_summed_in_float32() -> None:
    x, w = jax.numpy.ones((1, 4, 9, 9), "bfloat16"), jax.numpy.ones((4, 4, 3, 3), "bfloat16")
    texts = {}
    for way in ("auto", "xla"):
        lowerings(convolution=way)
        lowered = jax.jit(lambda x, w: CONV[2](x, w, None, padding=1)).lower(x, w)
        lines = lowered.as_text().splitlines()
        texts[way] = next(line for line in lines if "stablehlo.convolution" in line)
    assert texts["auto"].endswith("tensor<1x4x9x9xf32>")
    assert texts["xla"].endswith("tensor<1x4x9x9xbf16>")


def test_unknown_ways_are_errors() -> None:
    with pytest.raises(ValueError, match=r"no lowering convolution='fft'; there are convolution: "):
        lowerings(convolution="fft")
    with pytest.raises(ValueError, match=r"there is no lowering pooling='xla'"):
        lowerings(pooling="xla")
