"""Gradients of the weights of 3x3 convolutions on a CPU: ways to compute them, and torch's.

XLA computes them as a convolution of the input by the output's gradient. Tried against it: nine
matrix products, one a position of the kernel; one product with the input's columns; the same
convolution with channels last.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from turns import take_turns

#: batch, channels in, channels out, rows and columns of the maps.
SHAPES = [(16, 64, 64, 32), (16, 128, 128, 16), (16, 256, 256, 8), (16, 16, 16, 64)]


def by_xla(x: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    """As `jax.vjp` of the convolution has it."""

    def convolved(w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )

    return jax.vjp(convolved, w)[1](g)[0]


def _windows(x: jax.Array) -> list[jax.Array]:
    rows, columns = x.shape[2:]
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).transpose(0, 2, 3, 1)
    return [padded[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)]


def _flat(g: jax.Array) -> jax.Array:
    return lax.optimization_barrier(g.transpose(1, 0, 2, 3).reshape(g.shape[1], -1))


def by_nine(x: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    """A matrix product for each position of the kernel."""
    made = [_flat(g) @ part.reshape(-1, x.shape[1]) for part in _windows(x)]
    return jnp.stack(made, -1).reshape(w.shape)


def by_columns(x: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    """One product with all positions side by side."""
    columns = jnp.concatenate(_windows(x), -1).reshape(-1, 9 * x.shape[1])
    return (_flat(g) @ columns).reshape(w.shape[0], 3, 3, x.shape[1]).transpose(0, 3, 1, 2)


def channels_last(x: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    """XLA's convolution with the batch as its channels, which come last."""
    made = lax.conv_general_dilated(
        x.transpose(1, 2, 3, 0), g.transpose(2, 3, 0, 1), (1, 1), ((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    return made.transpose(3, 0, 1, 2)


WAYS: dict[str, Callable[..., jax.Array]] = {
    "XLA": by_xla, "nine products": by_nine, "columns": by_columns, "channels last": channels_last,
}  # fmt: skip


def _torch(x: Any, g: Any, w: Any) -> Callable[[int], Any]:
    import torch

    a, b, c = (torch.from_numpy(np.array(array)) for array in (x, g, w))
    backward = torch.ops.aten.convolution_backward
    one = [1, 1]
    return lambda i: backward(b, a, c, None, one, one, one, False, [0, 0], 1, [False, True, False])


def measure(rounds: int = 6, steps: int = 2) -> list[str]:
    """A row a shape: milliseconds of each way, and of torch."""
    random = np.random.default_rng(0)
    rows = []
    for n, c, o, size in SHAPES:
        shapes = ((n, c, size, size), (n, o, size, size), (o, c, 3, 3))
        x, g, w = (jnp.asarray(random.standard_normal(s), "float32") for s in shapes)
        made = {name: jax.jit(way) for name, way in WAYS.items()}
        expected = np.asarray(made["XLA"](x, g, w))
        for name, way in made.items():
            off = np.abs(np.asarray(way(x, g, w)) - expected).max()
            assert off < 1e-4 * np.abs(expected).max(), name
        runs: dict[str, Callable[[int], Any]] = {
            name: lambda i, way=way, x=x, g=g, w=w: jax.block_until_ready(way(x, g, w))
            for name, way in made.items()
        }
        if importlib.util.find_spec("torch"):
            runs["torch"] = _torch(x, g, w)
        taken = take_turns(runs, rounds, steps)
        figures = [f"{statistics.median(taken[name]) * 1e3:.2f}" for name in (*WAYS, "torch")
                   if name in taken]  # fmt: skip
        rows.append(f"| {c} to {o} channels, {size}x{size} | {' | '.join(figures)} |")
    return rows
