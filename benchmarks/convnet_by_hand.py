"""A convnet with batch norm by hand in JAX, whole and frozen but for its head."""

import functools
from typing import Any

import jax
import numpy as np
import optax
from handwritten import Batch, Program, State

WIDTHS = (3, 32, 32, 64, 64, 128, 128)
STRIDES = (1, 1, 2, 1, 2, 1)
IMAGES, SIZE, CLASSES, RATE = 16, 64, 10, 1e-3


def make_convnet(frozen: bool = False) -> Program:
    """Return six convolutions of 3x3, each with batch norm and ReLU, under Adam.

    Args:
        frozen: train the head alone; batch norm still uses the batch's statistics.
    """
    params = jax.tree.map(jax.numpy.asarray, convnet_params())
    trained = {k: v for k, v in params.items() if not frozen or k.startswith("head")}
    rest = {k: v for k, v in params.items() if k not in trained}
    optimizer = optax.adam(RATE)

    def loss_of(trained: Any, rest: Any, batch: Batch) -> jax.Array:
        losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(
            _logits({**rest, **trained}, batch[0]), batch[1]
        )
        return losses.mean()

    def step(rest: Any, state: State, batch: Batch) -> tuple[State, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of)(state.params, rest, batch)
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        return State(optax.apply_updates(state.params, updates), opt_state), loss

    compiled = functools.partial(jax.jit(step, donate_argnums=1), rest)
    return Program(compiled, State(trained, optimizer.init(trained)), convnet_batch)


def make_frozen() -> Program:
    """Return the convnet of which only the head is trained."""
    return make_convnet(frozen=True)


def _logits(params: Any, x: Any) -> jax.Array:
    for i, stride in enumerate(STRIDES):
        x = jax.lax.conv_general_dilated(
            x, params[f"{i}.weight"], (stride, stride), ((1, 1), (1, 1)),
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        )  # fmt: skip
        mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        scale, shift = (params[f"{i}.{name}"][:, None, None] for name in ("scale", "shift"))
        x = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift)
    return x.mean((2, 3)) @ params["head.weight"].T + params["head.bias"]


def convnet_params() -> dict[str, Any]:
    """Return `{"0.weight": float32[32, 3, 3, 3], "0.scale": float32[32], ..., "head.bias"}`."""
    random, params = np.random.default_rng(0), {}
    for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:], strict=False)):
        scale = np.float32((2 / (9 * inputs)) ** 0.5)
        params[f"{i}.weight"] = random.standard_normal((outputs, inputs, 3, 3), np.float32) * scale
        params[f"{i}.scale"] = np.ones(outputs, np.float32)
        params[f"{i}.shift"] = np.zeros(outputs, np.float32)
    params["head.weight"] = random.standard_normal((CLASSES, WIDTHS[-1]), np.float32) / 10
    params["head.bias"] = np.zeros(CLASSES, np.float32)
    return params


def convnet_batch(i: int) -> Batch:
    """Return noise, `float32[IMAGES, 3, SIZE, SIZE]`, and labels `int32[IMAGES]`."""
    random = np.random.default_rng(i)
    images = random.standard_normal((IMAGES, 3, SIZE, SIZE), np.float32)
    return images, random.integers(CLASSES, size=IMAGES).astype(np.int32)
