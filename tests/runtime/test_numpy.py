"""Ops on few elements that run op by op are NumPy's: what they give, and what is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import lax

import leafax
from leafax.functional.execution import single_ops
from leafax.functional.execution.numpy.evaluator import MOST, evaluator
from leafax.functional.ops.nn.taps import Taps, weighted

FLOATS = np.array([[0.5, -1.25, 0.0], [-0.0, 3.0, np.nan], [np.inf, -0.5, 1.0]], np.float32)
INTS = np.array([[3, -7, 0], [2**31 - 1, 5, 1], [-1, 2, 9]], np.int32)
BOOLS = np.array([True, False, True])

FEW = Taps((4, 3), (0, 0, 1, 3), (1, 2, 0, 1), (0.25, 0.75, 1.0, 0.5))
MANY = Taps((2, 3), (0,) * 9 + (1,), (0, 1, 2) * 3 + (1,), (0.125,) * 10)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sign": jnp.sign, "abs": jnp.abs, "square": jnp.square, "max": lambda x: jnp.maximum(x, x.T),
    "min": lambda x: jnp.minimum(x, x.T), "less": lambda x: x < x.T, "equal": lambda x: x == x.T,
    "argmax": lambda x: jnp.argmax(x, 1), "argmin": jnp.argmin,
    "sum": lambda x: x.sum(0), "sum of all": lambda x: x.sum(), "prod": lambda x: x.prod(1),
    "amax": lambda x: x.max(1), "amin": lambda x: x.min(), "cumsum": lambda x: x.cumsum(1),
    "cumsum from the end": lambda x: lax.cumsum(x, 0, reverse=True), "neg": lambda x: -x,
    "reshape": lambda x: x.reshape(-1), "transpose": lambda x: x.T, "flip": lambda x: x[::-1],
    "slice": lambda x: x[1:, ::2], "pad": lambda x: lax.pad(x, x[0, 0], ((1, 0, 2), (0, 2, 0))),
    "cut": lambda x: lax.pad(x, x[0, 0], ((-1, 0, 2), (1, -3, 1))),
    "cut all": lambda x: lax.pad(x, x[0, 0], ((-3, 2, 0), (0, -3, 0))),
    "cut between": lambda x: lax.pad(x, x[0, 0], ((-1, -1, 3), (-4, 1, 2))),
    "running maximum": lambda x: lax.cummax(x, 1), "running minimum": lambda x: lax.cummin(x, 0),
    "running maximum from the end": lambda x: lax.cummax(x, 0, reverse=True),
    "pad nothing": lambda x: lax.pad(x[:0], x[0, 0], ((1, 0, 2), (0, 2, 0))),
    "reshape of turned dims": lambda x: lax.reshape(x, (9,), (1, 0)),
    "tile": lambda x: jnp.tile(x, (2, 1, 3)), "gradient of tile": lambda x: jax.vjp(
        lambda y: jnp.tile(y, (2, 3)), x * 1.0)[1](jnp.ones((6, 9)).astype((x * 1.0).dtype)),
    "stack": lambda x: jnp.stack([x, x + 1], 1), "unstack": lambda x: jnp.unstack(x, axis=1),
    "gradient of stack": lambda x: jax.vjp(lambda y: jnp.stack([y]), x * 1.0)[1](x[None] * 1.0),
    "split": lambda x: jnp.split(x, [1], 1)[1],
    "concatenate": lambda x: jnp.concatenate([x, x[:1]]), "iota": lambda x: x + jnp.arange(3),
    "gather of nothing": lambda x: jax.vmap(lambda y, i: y[i])(x[:0], jnp.zeros((0, 2), int)),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (5, -4), (2, 2)),
    "dynamic write": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (2, -1)),
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (3, 2, 3)), "as bool": lambda x: x != 0,
    "where": lambda x: jnp.where(x > 0, x, -1), "to float64": lambda x: x.astype("float64"),
    "cumprod": lambda x: x.cumprod(0), "sort": jnp.sort, "argsort": lambda x: x.argsort(0),
    "cumprod from the end": lambda x: lax.cumprod(x, 1, reverse=True),
    "remainder": lambda x: lax.rem(x, x.T),
    "divide": lambda x: lax.div(x, x[::-1]), "modulo": lambda x: x % 3,
    "cube": lambda x: x**3, "gradient": lambda x: jax.vjp(lambda y: jnp.sum(y * y), x)[1](x[0, 0]),
}  # fmt: skip
OF_FLOATS: dict[str, Callable[..., Any]] = {
    "exp": jnp.exp, "log": jnp.log, "log1p": jnp.log1p, "expm1": jnp.expm1, "sqrt": jnp.sqrt,
    "tanh": jnp.tanh, "sin": jnp.sin, "rsqrt": lax.rsqrt, "logistic": jax.nn.sigmoid,
    "div": lambda x: x / x.T, "pow": lambda x: jnp.abs(x) ** x, "x ** -2": lambda x: x**-2,
    "floor": jnp.floor, "atan2": lambda x: jnp.arctan2(x, x.T), "isfinite": jnp.isfinite,
    "matmul": lambda x: jnp.nan_to_num(x, posinf=2) @ x[:2].T[:, :1],
    "batched matmul": lambda x: jnp.einsum("bij,bjk->bik", x[None] - 1, x[None, :, :2]),
    "round": jnp.round, "to int32": lambda x: (x * 2e9).astype("int32"),
    "to uint8": lambda x: (x * 99).astype("uint8"),
    "erf": lax.erf, "erfc": lax.erfc, "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "relu": jax.nn.relu, "softmax": jax.nn.softmax,
    "greatest": lambda x: lax.top_k(x, 2), "greatest of a column": lambda x: lax.top_k(x.T, 3),
    "greatest of equal ones": lambda x: lax.top_k(jnp.signbit(x) * 1.0, 3),
    "greatest of zeros and NaN": lambda x: lax.top_k(
        jnp.concatenate([x, -x, x * 0]).reshape(-1), 27),
    "greatest of rows": lambda x: lax.top_k(x, 2, axis=0),
    "weighted": lambda x: weighted(x, 0, FEW), "weighted columns": lambda x: weighted(x, 1, FEW),
    "weighted, many": lambda x: weighted(jnp.nan_to_num(x, posinf=2), 1, MANY),
    "weighted, many and not finite": lambda x: weighted(x, 1, MANY),
    "weighted nothing": lambda x: weighted(x[:0], 1, FEW),
    "gradient of weighted": lambda x: jax.vjp(lambda y: weighted(y, 0, FEW), x)[1](
        jnp.ones((4, 3), x.dtype)),
}  # fmt: skip


ROWS = np.array([[2, 0], [-1, 1], [7, 2]], np.int32)
IN_BATCHES = jax.vmap(lambda x, i: x[i])
INDEXED: dict[str, Callable[..., Any]] = {
    "rows": lambda x, i: x[i], "a column's": lambda x, i: x[i[:, 0], i[:, 1]],
    "columns": lambda x, i: x[:, i[0]], "windows": lambda x, i: x[1:][:, i],
    "filled": lambda x, i: x.at[i].get(mode="fill"),
    "filled by a number": lambda x, i: x.at[:, i].get(mode="fill", fill_value=4),
    "clipped": lambda x, i: x.at[i].get(mode="clip"), "take": lambda x, i: jnp.take(x, i, 1),
    "along": lambda x, i: jnp.take_along_axis(x, jnp.abs(i) & 1, 1), "batched": IN_BATCHES,
    "window moved to fit": lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 2), mode="clip"),
    "window outside": lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((0, 2), (), (1, 0)), (2, 2), mode="fill"),
    "write": lambda x, i: x.at[i[:, 0] & 1].set(x[::-1]), "add": lambda x, i: x.at[i].add(x[0]),
    "write the last": lambda x, i: x.at[i & 1, 0].set(jnp.arange(6).reshape(3, 2).astype(x.dtype)),
    "multiply": lambda x, i: x.at[i].mul(x[0]), "lower": lambda x, i: x.at[i, i].min(x[2, 0]),
    "raise": lambda x, i: x.at[:, i].max(x[:, :1, None]),
    "add to columns": lambda x, i: x.at[:, i].add(2), "drop": lambda x, i: x.at[i].set(x[1]),
    "add at places": lambda x, i: x.at[i[:, 0], i[:, 1]].add(x[2], mode="clip"),
    "add in batches": jax.vmap(lambda x, i: x.at[i].add(x[:2])),
    "window added": lambda x, i: lax.scatter_add(
        x, i, jnp.ones((2, 3, 2), x.dtype), lax.ScatterDimensionNumbers((0, 2), (), (0, 1))),
    "window clipped": lambda x, i: lax.scatter(
        x, i[:1], jnp.ones((1, 2, 2), x.dtype), lax.ScatterDimensionNumbers((1, 2), (), (1, 0)),
        mode="clip"),
    "nothing": lambda x, i: x[i[:0]] + 1, "add nothing": lambda x, i: x.at[i[:0]].add(1),
}  # fmt: skip


def same(fn: Callable[..., Any], *arrays: Any, atol: float = 1e-6) -> None:
    by_numpy = evaluator(fn, arrays)
    assert by_numpy is not None
    for mine, xla in zip(by_numpy(*arrays), jax.tree.leaves(jax.jit(fn)(*arrays)), strict=True):
        assert mine.dtype == xla.dtype
        np.testing.assert_allclose(mine, xla, 2e-6, atol)
        zero = np.asarray(xla) == 0
        np.testing.assert_array_equal(np.signbit(mine)[zero], np.signbit(xla)[zero])


@pytest.mark.quick(36)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [FLOATS, INTS], ids=["float32", "int32"])
def test_numbers(name: str, x: Any) -> None:
    fn = FUNCTIONS[name]
    if x is INTS and name in ("cube", "gradient"):
        assert evaluator(fn, [x]) is None
        return
    with jax.enable_x64(True):
        same(fn, x)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_floats(name: str) -> None:
    same(OF_FLOATS[name], FLOATS)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
def test_floats_that_do_not_fit_an_integer(dtype: str) -> None:
    with jax.enable_x64(True):
        x = np.array([9.3e18, -9.3e18, 1.9e19, -0.9, 4294967295.5, 2.0**63, -(2.0**63), np.nan])
        same(lambda x: x.astype(dtype), x)


@pytest.mark.quick(26)
@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("x", [FLOATS, INTS, INTS > 0], ids=["float32", "int32", "bool"])
def test_indices(name: str, x: Any) -> None:
    if x.dtype == bool and ("add" in name or name in ("multiply", "raise", "lower")):
        x = x.astype(np.uint8)
    same(INDEXED[name], x, ROWS)


@pytest.mark.parametrize("shape", [(312, 32, 128), (32, 300, 128), (700, 40, 1), (7, 2**14, 7)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_are_computed_by_one_thread(shape: Any, batch: Any) -> None:
    """NumPy's threads wait for each other by spinning, on a busy machine for milliseconds."""
    draw = np.random.default_rng(0)
    m, k, n = shape
    x, y = (draw.normal(size=(*batch, *s)).astype(np.float32) for s in ((m, k), (k, n)))
    run = evaluator(jnp.matmul, [x, y])
    assert run is not None
    with mock.patch.object(np, "matmul", wraps=np.matmul) as products:
        (found,) = run(x, y)
    np.testing.assert_allclose(found, x @ y, 1e-4, 1e-3)
    one = [a.shape[-2] * a.shape[-1] * b.shape[-1] for a, b, *_ in (c.args for c in
           products.mock_calls)]  # fmt: skip
    assert len(one) == -(-m * k * n // 2**18) or k == 2**14 and len(one) == 1
    assert k == 2**14 or max(one) <= 2**18


def looped(x: Any, **how: Any) -> Any:
    """A recurrence over rows: what is carried, and something of each row."""
    weight = x[0]

    def turn(h: Any, row: Any) -> Any:
        h = jnp.where(row > 0, h, h + row * weight)
        return h, (h.sum(), row < h)

    return lax.scan(turn, x[1], x, **how)


LOOPS: dict[str, Callable[[Any], Any]] = {
    "forward": looped, "backward": lambda x: looped(x, reverse=True),
    "of none": lambda x: (looped(x)[0], lax.scan(lambda h, row: (h + row, h), x[0], x[:0])),
    "nothing carried": lambda x: lax.scan(lambda h, row: (h, row + 1), None, x)[1],
    "nothing stacked": lambda x: lax.scan(lambda h, row: (h + row, None), x[0] * 0, x)[0],
    "by number": lambda x: lax.scan(lambda h, _: (h * x[1], h), x[0], None, length=4),
    "nested": lambda x: lax.scan(lambda h, row: (looped(x + row)[0] + h, h), x[0], x),
    "its gradient": lambda x: jax.vjp(lambda x: looped(x)[1][0], x)[1](x[:, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    same(LOOPS[name], FLOATS)


def test_loops_are_compiled_sooner() -> None:
    short, long = (evaluator(looped, [np.ones((n, 3))]) for n in (2, 900))
    assert short is not None and long is not None
    assert single_ops._NumpyRuns(short)._left > 900 and single_ops._NumpyRuns(long)._left < 100
    assert evaluator(looped, [np.ones((2, 3))], exact=True) is None


WORDS = np.array([7, 0, 2**32 - 1, 31, 12, 1], np.uint32)
OF_WORDS: dict[str, Callable[..., Any]] = {
    "rem": lambda x: x % x[::-1], "rem of ints": lambda x: lax.rem(x.astype("int32"), INTS[0, 1]),
    "left": lambda x: x << x[::-1], "right": lambda x: lax.shift_right_logical(x, x[::-1]),
    "right of ints": lambda x: lax.shift_right_arithmetic(
        x.astype("int64") - 9, x[::-1].astype("int64") - 5),
    "left of ints": lambda x: lax.shift_left(x.astype("int64"), x[::-1].astype("int64")),
    "bits of floats": lambda x: lax.bitcast_convert_type(x, jnp.float32) * 0 == 0,
    "sorted": jnp.sort, "order": lambda x: jnp.argsort(x % 3), "product": lambda x: x * x,
    "less": lambda x: x - x[::-1] < x, "wide": lambda x: x.astype("uint64") * x[3] - x,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_WORDS)
def test_words(name: str) -> None:
    with jax.enable_x64(True):
        same(OF_WORDS[name], WORDS)


DRAWS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda k: jax.random.normal(k, (3, 40), "float32"),
    "normal in double": lambda k: jax.random.normal(k, (70,), "float64"),
    "one": jax.random.normal, "none": lambda k: jax.random.normal(k, (0, 2)),
    "uniform": lambda k: jax.random.uniform(k, (9, 2), "float64"),
    "bounded": lambda k: jax.random.uniform(k, (9,), "float32", -4.0, 4.0),
    "integers": lambda k: jax.random.randint(k, (30,), -5, 2**40, "int64"),
    "all integers": lambda k: jax.random.randint(k, (30,), -(2**63), 2**63 - 1, "int64"),
    "permutation": lambda k: jax.random.permutation(k, 50), "split": lambda k: jax.random.uniform(
        jax.random.split(k, 3)[1], (4,)),
    "folded": lambda k: jax.random.bits(jax.random.fold_in(k, 2**31), (4,), "uint64"),
    "words": lambda k: jax.random.key_data(jax.random.split(k, (2, 2))[1, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_those_of_xla_to_the_last_bit(name: str) -> None:
    def draw(words: Any) -> Any:
        return DRAWS[name](jax.random.wrap_key_data(words, impl="threefry2x32"))

    with jax.enable_x64(True):
        compiled = jax.jit(draw)
        by_numpy = evaluator(draw, [np.zeros(2, np.uint32)], exact=True)
        assert by_numpy is not None
        for seed in range(20):
            words = np.asarray(jax.random.key_data(jax.random.key(seed * 104729)))
            (mine,), xla = by_numpy(words), np.asarray(compiled(words))
            assert mine.dtype == xla.dtype and mine.shape == xla.shape
            np.testing.assert_array_equal(mine, xla)


ROUNDED: dict[str, Callable[[Any], Any]] = {
    "added to a product": lambda k: jax.random.uniform(k, (9,), "float32", -3.0, 0.7),
    "exponential": jax.random.exponential, "sum": lambda k: jax.random.uniform(k, (9,)).sum(),
    "mean of normals": lambda k: 1.5 + 0.3 * jax.random.normal(k, (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_random_numbers_that_are_rounded_are_for_xla(name: str) -> None:
    assert evaluator(ROUNDED[name], [jax.random.key(0)]) is not None
    assert evaluator(ROUNDED[name], [jax.random.key(0)], exact=True) is None


def test_counters_of_the_old_kind_are_for_xla() -> None:
    with jax.threefry_partitionable(False):  # type: ignore[attr-defined]
        assert evaluator(jax.random.bits, [jax.random.key(0)]) is None


IMAGES = np.random.default_rng(0).standard_normal((3, 4, 7, 6))
KERNELS = np.random.default_rng(1).standard_normal((6, 4, 3, 2))


def _convolved(**options: Any) -> Callable[..., Any]:
    numbers = ("NCHW", "OIHW", "NCHW")
    given = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": numbers} | options
    return lambda x, w: lax.conv_general_dilated(x, w, **given)


CONVOLUTIONS: dict[str, Callable[..., Any]] = {
    "same": _convolved(), "valid": _convolved(padding="VALID"),
    "strides": _convolved(window_strides=(2, 3), padding=((1, 0), (2, 3))),
    "cut": _convolved(padding=((-1, 2), (0, -2))), "dilated": _convolved(rhs_dilation=(2, 3)),
    "spread": _convolved(lhs_dilation=(2, 3), padding=((2, 0), (-1, 4))),
    "spread and cut": _convolved(lhs_dilation=(3, 2), padding=((-2, -4), (-3, -1))),
    "too small": _convolved(padding="VALID", rhs_dilation=(4, 1)),
    "groups": lambda x, w: _convolved(feature_group_count=2)(x, w[:, :2]),
    "each channel": lambda x, w: _convolved(feature_group_count=4)(x, w[:4, :1]),
    "groups of rows": _convolved(batch_group_count=3),
    "channels last": lambda x, w: _convolved(dimension_numbers=("NHWC", "HWIO", "NHWC"))(
        x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)),
    "nothing": lambda x, w: _convolved()(x[:0], w),
    "no channels": lambda x, w: _convolved()(x[:, :0], w[:, :0]),
    "no rows but padding": lambda x, w: _convolved(padding=((2, 3), (1, 1)))(x[:, :, :0], w),
    "a vector": lambda x, w: lax.conv_general_dilated(
        x[:, :, 0], w[..., 0], (1,), ((1, 1),), dimension_numbers=("NCH", "OIH", "NCH")),
    "gradient": lambda x, w: jax.vjp(_convolved(window_strides=(2, 1)), x, w)[1](
        jnp.ones((3, 6, 4, 6), x.dtype)),
    "gradient of groups": lambda x, w: jax.vjp(_convolved(feature_group_count=2), x, w[:, :2])[1](
        jnp.ones((3, 6, 7, 6), x.dtype)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions(name: str, dtype: str) -> None:
    with jax.enable_x64(True):
        # Up to 126 products are summed, in an order that depends on the processor: partial sums
        # up to 10 are rounded by 2**-24 of themselves, some ten of them in the same direction.
        atol = 1e-5 if dtype == "float32" else 1e-6
        same(CONVOLUTIONS[name], IMAGES.astype(dtype), KERNELS.astype(dtype), atol=atol)


def test_convolutions_of_zeros_and_of_what_is_not_finite() -> None:
    x, w = IMAGES.astype("float32"), KERNELS.astype("float32")
    x[0], x[1, 0, 3, 2], x[2, 1, 0, 0] = 0, np.inf, np.nan
    same(_convolved(padding="VALID"), x, w)
    same(_convolved(padding="VALID"), -x, -np.abs(w))


def test_convolutions_count_what_they_multiply() -> None:
    """By NumPy they take as long as their matrices have elements, so they are compiled sooner."""
    found = evaluator(_convolved(), [IMAGES.astype("float32"), KERNELS.astype("float32")])
    assert found is not None and found.largest == 3 * 7 * 6 * 4 * 3 * 2


def test_large_convolutions_are_for_xla() -> None:
    x, w = np.ones((8, 16, 32, 32), np.float32), np.ones((1, 16, 7, 7), np.float32)
    assert evaluator(_convolved(), [x, w]) is None
    assert evaluator(_convolved(), [INTS[None, None], INTS[None, None]]) is None


def test_gradients_by_index() -> None:
    same(lambda x, i: jax.vjp(lambda x: IN_BATCHES(x, i), x)[1](x[:, 1:]), FLOATS, ROWS)


@pytest.mark.parametrize(
    "fn",
    [jnp.all, jnp.any, jnp.logical_not, lambda x: x & x[::-1], lambda x: x.astype(jnp.float32)],
)
def test_bools(fn: Callable[..., Any]) -> None:
    same(fn, BOOLS)


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: lax.sort(x, is_stable=False), FLOATS),
        (jnp.sin, FLOATS.astype(jnp.bfloat16)),
        (lambda x: x[:0].max(0, initial=0), FLOATS),  # NumPy has no maximum of nothing
        (lax.round, FLOATS),  # away from zero
        (lambda x: lax.div(x, x), INTS.astype(np.uint32)),  # by zero
        (lambda x: jnp.broadcast_to(x, (MOST, 3, 3)), FLOATS),
        (lambda x: x + 1, np.zeros(MOST + 1)),
        (lambda k: jax.random.normal(k, (3,)), jax.random.key(0, impl="rbg")),
        (lambda k: jax.vmap(jax.random.bits)(k), jax.random.split(jax.random.key(0))),
        (lambda k: jnp.broadcast_to(k, (2, 2)), jax.random.key(0)),
        (lambda x: x.view(jnp.uint8), FLOATS),
    ],
)
def test_what_is_for_xla(fn: Callable[..., Any], x: Any) -> None:
    assert evaluator(fn, [x]) is None


def test_results_are_memory_of_their_own() -> None:
    x = np.arange(6.0)
    (view,) = evaluator(lambda x: x.reshape(2, 3), [x])(x)  # type: ignore[misc]
    assert not np.shares_memory(view, x)


def test_episodes_of_other_lengths_compile_nothing() -> None:
    """Results of an episode have its length; each op on them was once compiled per length."""
    weight = leafax.full((4, 2), 0.25, requires_grad=True)
    optimizer = leafax.optim.SGD([weight], lr=0.01)
    draw = np.random.default_rng(0)

    def episode(length: int) -> float:
        chosen, rewards = [], []
        for _ in range(length):
            state = leafax.from_numpy(draw.normal(size=4).astype(np.float32))
            p = leafax.log_softmax(state @ weight, -1)
            action = int(draw.random() < p[1].exp().item())
            chosen.append(p[action])
            rewards.append(float(action))
        returns = leafax.tensor(rewards)
        returns = (returns - returns.mean()) / (returns.std() + 1e-5)
        loss = -(leafax.stack(chosen) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for length in (22, 19, 27):
        episode(length)
    leafax.explain(clear=True)
    with mock.patch.object(single_ops, "_compiled") as compiled:
        losses = [episode(length) for length in (21, 30, 18, 22, 30)]
    updates = [run.how for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert not compiled.called and updates == ["op by op"] * 5
    assert np.isfinite(losses).all()


@pytest.mark.parametrize("steps", [1, 40])
def test_an_op_that_runs_often_is_compiled_if_numpy_is_slower(steps: int) -> None:
    def add(x: Any) -> Any:
        for i in range(steps):
            x = x + i
        return x

    x = leafax.arange(19.0)
    x.tolist()
    with mock.patch.object(single_ops, "NUMPY_RUNS", 3):
        call = single_ops._try_numpy(add, [x.jax()], False, None)
    assert call is not None
    found = [call(x.jax()) is not None for _ in range(5)]
    assert found == [True] * 5 if steps == 1 else [True] * 3 + [False] * 2


def mixture(torch: Any) -> Callable[..., float]:
    """A step of three experts, by how many rows each of them gets."""
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.normal(size=(24, 4)).astype(np.float32))
    weights = torch.from_numpy(draw.normal(size=(3, 4, 4)).astype(np.float32)).requires_grad_()
    optimizer = torch.optim.SGD([weights], lr=0.01)

    def step(*sizes: int) -> float:
        chosen = torch.from_numpy(draw.permutation(np.repeat(np.arange(3), sizes)))
        out = torch.zeros(24, 4)
        for e in range(3):
            (rows,) = torch.where(chosen == e)
            out.index_add_(0, rows, torch.nn.functional.gelu(x[rows] @ weights[e]))
        loss = (out**2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()  # type: ignore[no-any-return]

    return step


@pytest.mark.exhaustive
def test_experts_of_other_sizes_compile_nothing() -> None:
    """Each expert of a mixture gets other rows at each step; sizes seldom meet twice."""
    mine, theirs = mixture(leafax), mixture(torch)
    for sizes in [(8, 8, 8), (7, 9, 8), (6, 9, 9), (10, 7, 7), (5, 6, 13)]:
        np.testing.assert_allclose(mine(*sizes), theirs(*sizes), 1e-5)
    leafax.explain(clear=True)
    with mock.patch.object(single_ops, "_compiled") as compiled:
        for sizes in [(11, 9, 4), (3, 9, 12), (2, 8, 14)]:
            np.testing.assert_allclose(mine(*sizes), theirs(*sizes), 1e-5)
    updates = [run.how for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert not compiled.called and updates == ["op by op"] * 3
