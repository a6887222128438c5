"""Ops on few elements that run op by op are NumPy's: what they give, and what is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import leafax
from leafax.functional import _alone
from leafax.functional._numpy import MOST, evaluator

FLOATS = np.array([[0.5, -1.25, 0.0], [-0.0, 3.0, np.nan], [np.inf, -0.5, 1.0]], np.float32)
INTS = np.array([[3, -7, 0], [2**31 - 1, 5, 1], [-1, 2, 9]], np.int32)
BOOLS = np.array([True, False, True])

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sign": jnp.sign, "abs": jnp.abs, "square": jnp.square, "max": lambda x: jnp.maximum(x, x.T),
    "min": lambda x: jnp.minimum(x, x.T), "less": lambda x: x < x.T, "equal": lambda x: x == x.T,
    "sum": lambda x: x.sum(0), "sum of all": lambda x: x.sum(), "prod": lambda x: x.prod(1),
    "amax": lambda x: x.max(1), "amin": lambda x: x.min(), "cumsum": lambda x: x.cumsum(1),
    "cumsum from the end": lambda x: lax.cumsum(x, 0, reverse=True), "neg": lambda x: -x,
    "reshape": lambda x: x.reshape(-1), "transpose": lambda x: x.T, "flip": lambda x: x[::-1],
    "slice": lambda x: x[1:, ::2], "pad": lambda x: lax.pad(x, x[0, 0], ((1, 0, 2), (0, 2, 0))),
    "pad nothing": lambda x: lax.pad(x[:0], x[0, 0], ((1, 0, 2), (0, 2, 0))),
    "stack": lambda x: jnp.stack([x, x + 1], 1), "unstack": lambda x: jnp.unstack(x, axis=1),
    "gradient of stack": lambda x: jax.vjp(lambda y: jnp.stack([y]), x * 1.0)[1](x[None] * 1.0),
    "split": lambda x: jnp.split(x, [1], 1)[1],
    "concatenate": lambda x: jnp.concatenate([x, x[:1]]), "iota": lambda x: x + jnp.arange(3),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (5, -4), (2, 2)),
    "dynamic write": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (2, -1)),
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (3, 2, 3)), "as bool": lambda x: x != 0,
    "where": lambda x: jnp.where(x > 0, x, -1), "to float64": lambda x: x.astype("float64"),
    "cube": lambda x: x**3, "gradient": lambda x: jax.vjp(lambda y: jnp.sum(y * y), x)[1](x[0, 0]),
}  # fmt: skip
OF_FLOATS: dict[str, Callable[..., Any]] = {
    "exp": jnp.exp, "log": jnp.log, "log1p": jnp.log1p, "expm1": jnp.expm1, "sqrt": jnp.sqrt,
    "tanh": jnp.tanh, "sin": jnp.sin, "rsqrt": lax.rsqrt, "logistic": jax.nn.sigmoid,
    "div": lambda x: x / x.T, "pow": lambda x: jnp.abs(x) ** x, "x ** -2": lambda x: x**-2,
    "floor": jnp.floor, "atan2": lambda x: jnp.arctan2(x, x.T), "isfinite": jnp.isfinite,
    "matmul": lambda x: jnp.nan_to_num(x, posinf=2) @ x[:2].T[:, :1],
    "batched matmul": lambda x: jnp.einsum("bij,bjk->bik", x[None] - 1, x[None, :, :2]),
    "relu": jax.nn.relu, "softmax": jax.nn.softmax,
}  # fmt: skip


def same(fn: Callable[..., Any], *arrays: Any) -> None:
    by_numpy = evaluator(fn, arrays)
    assert by_numpy is not None
    for mine, xla in zip(by_numpy(*arrays), jax.tree.leaves(jax.jit(fn)(*arrays)), strict=True):
        assert mine.dtype == xla.dtype
        np.testing.assert_allclose(mine, xla, 2e-6, 1e-6)
        zero = np.asarray(xla) == 0
        np.testing.assert_array_equal(np.signbit(mine)[zero], np.signbit(xla)[zero])


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


@pytest.mark.parametrize(
    "fn",
    [jnp.all, jnp.any, jnp.logical_not, lambda x: x & x[::-1], lambda x: x.astype(jnp.float32)],
)
def test_bools(fn: Callable[..., Any]) -> None:
    same(fn, BOOLS)


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (jnp.sort, FLOATS),  # NumPy and XLA order NaN in their own ways
        (jnp.sin, FLOATS.astype(jnp.bfloat16)),
        (lambda x: x[:0].max(0, initial=0), FLOATS),  # NumPy has no maximum of nothing
        (lambda x: x.astype("int32"), FLOATS),  # of NaN
        (lambda x: x // x.T, INTS),  # by zero
        (lambda x: jnp.broadcast_to(x, (MOST, 3, 3)), FLOATS),
        (lambda x: x + 1, np.zeros(MOST + 1)),
        (lambda k: jax.random.normal(k, (3,)), jax.random.key(0)),
    ],
)
def test_what_is_for_xla(fn: Callable[..., Any], x: Any) -> None:
    assert evaluator(fn, [x]) is None


def test_results_are_memory_of_their_own() -> None:
    x = np.arange(6.0)
    (view,) = evaluator(lambda x: x.reshape(2, 3), [x])(x)  # type: ignore[misc]
    assert not np.shares_memory(view, x)


def test_episodes_of_other_lengths_compile_nothing() -> None:
    """What is computed of a whole episode has its length; each op was compiled for each length."""
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
    with mock.patch.object(_alone, "_compiled") as compiled:
        losses = [episode(length) for length in (21, 30, 18, 22, 30)]
    updates = [run.how for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert not compiled.called and updates == ["op by op"] * 5
    assert np.isfinite(losses).all()


def test_an_op_that_runs_often_is_compiled() -> None:
    x = leafax.arange(19.0)
    x.tolist()
    with mock.patch.object(_alone, "_OFTEN", 3):
        call = _alone._small(lambda x: x + 1, [x.jax()])
    assert call is not None
    assert [call(x.jax()) is not None for _ in range(5)] == [True] * 3 + [False] * 2
