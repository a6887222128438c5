"""Ops computed in several ways: the same values, each way where it is meant."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

import leafax
from leafax.functional import TABLE, Input, lowerings
from leafax.functional.execution.weight_gradients import transpose_products

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
    lowerings(convolution="auto", products="auto")


@pytest.mark.quick(2)
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


def _weight_gradients(rows: int, columns: int) -> tuple[Any, Any]:
    """A program of two weight gradients, one in a program of its own, and its arrays."""
    product = functools.partial(jax.lax.dot_general, dimension_numbers=(((0,), (0,)), ((), ())))
    random = np.random.default_rng(0)
    g, x = (random.standard_normal((2048, n)).astype("float32") for n in (rows, columns))
    program = jax.make_jaxpr(lambda g, x: (product(g * 2, x), jax.jit(product)(g, x)))(g, x)
    return program, (g, x)


def test_operands_of_weight_gradients_are_turned() -> None:
    program, arrays = _weight_gradients(128, 256)
    after = transpose_products(program)
    assert str(after).count("(([1], [0]), ([], []))") == 2
    assert str(after).count("optimization_barrier") == 2, "or XLA turns it back"
    for x, y in zip(jaxpr_as_fun(after)(*arrays), jaxpr_as_fun(program)(*arrays), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-3)  # sums of 2048 products


@pytest.mark.parametrize("rows, columns", [(100, 512), (512, 100), (128, 64)])
def test_other_products_are_left_alone(rows: int, columns: int) -> None:
    program, _ = _weight_gradients(rows, columns)
    assert transpose_products(program) is program


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="what XLA does on CPUs")
@pytest.mark.parametrize("way, turns", [("auto", 1), ("xla", 0)])
def test_a_step_turns_them_on_a_cpu(way: str, turns: int) -> None:
    from leafax._runtime import cut

    lowerings(products=way)
    # Another number for each way: programs that were compiled before stay as they are.
    x, w = leafax.rand(2048, 128) + turns, leafax.rand(128, 128, requires_grad=True)
    for _ in range(2):
        w.grad = None
        (leafax.nn.functional.linear(x, w) * (turns + 2)).square().sum().backward()
        leafax.synchronize()
    grad = w.grad.numpy()
    plan = cut.plans[-1][1]
    avals = [e.aval.struct() for e in plan.program.entries if isinstance(e, Input)]
    assert plan.lowered(avals).as_text().count("optimization_barrier") == turns
    y = leafax.nn.functional.linear(x, w).detach() * (2 * (turns + 2) ** 2)
    np.testing.assert_allclose(grad, (y.t() @ x).numpy(), rtol=1e-5)


def test_unknown_ways_are_errors() -> None:
    with pytest.raises(ValueError, match=r"no lowering convolution='fft'; there are convolution: "):
        lowerings(convolution="fft")
    with pytest.raises(ValueError, match=r"there is no lowering pooling='xla'"):
        lowerings(pooling="xla")
