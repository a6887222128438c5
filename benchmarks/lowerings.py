"""The gain from choosing a lowering: XLA's own way and leafax's choice take turns.

python benchmarks/lowerings.py
"""

from __future__ import annotations

import functools
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from leafax.functional import TABLE, lowerings
from leafax.functional.execution.weight_gradients import transpose_products

# (batch, channels in, channels out, height and width, kernel, stride, padding, groups)
SHAPES = [
    (16, 512, 512, 2, 3, 1, 1, 1),
    (16, 256, 512, 4, 3, 2, 1, 1),
    (16, 512, 512, 4, 3, 1, 1, 1),
    (16, 256, 256, 4, 3, 1, 1, 1),
    (16, 64, 64, 16, 1, 1, 0, 1),
    (16, 96, 96, 24, 3, 1, 1, 96),
    (16, 480, 480, 6, 5, 1, 2, 480),
    (16, 256, 256, 8, 3, 1, 1, 1),
]

# (rows of the batch, outputs, inputs) of linear layers
LAYERS = [
    (128, 512, 512), (128, 512, 784), (2048, 384, 128), (2048, 512, 128), (2048, 128, 512),
    (256, 768, 768), (128, 1024, 1024),
]  # fmt: skip


def measure_products(repeats: int = 60) -> list[str]:
    """Rows of the results table: backward and update of a linear layer, milliseconds."""
    random = np.random.default_rng(0)
    rows = []
    for n, outputs, inputs in LAYERS:
        sizes = [(n, outputs), (n, outputs), (n, inputs), (outputs, inputs)]
        arrays = [jnp.asarray(random.standard_normal(s, np.float32)) for s in sizes]
        program = jax.jit(_linear_backward).trace(*arrays).jaxpr
        runs = {
            "xla": jax.jit(jaxpr_as_fun(program)),
            "auto": jax.jit(jaxpr_as_fun(transpose_products(program))),
        }
        times: dict[str, list[float]] = {way: [] for way in runs}
        for repeat in range(repeats):
            for way, run in runs.items():
                start = time.perf_counter()
                jax.block_until_ready(run(*arrays))
                if repeat:
                    times[way].append((time.perf_counter() - start) * 1e3)
        xla, ours = (statistics.median(times[way]) for way in ("xla", "auto"))
        turns = "turned" if transpose_products(program) is not program else "as it is"
        rows.append(
            f"| {inputs} to {outputs}, batch {n} | {turns} | {xla:.2f} | {ours:.2f} | "
            f"{xla / ours:.2f} |"
        )
    return rows


def _linear_backward(g: Any, z: Any, x: Any, w: Any) -> Any:
    g = jnp.where(z > 0, g, 0)
    grad = jax.lax.dot_general(g, x, (((0,), (0,)), ((), ())))
    return w - 0.1 * grad, g.sum(0), g @ w


def measure(repeats: int = 7) -> list[str]:
    """Rows of the results table; forward and both gradients, milliseconds."""
    conv = TABLE["conv2d"].fn
    random = np.random.default_rng(0)
    rows = []
    for n, c, o, size, k, stride, padding, groups in SHAPES:
        x = jnp.asarray(random.standard_normal((n, c, size, size), np.float32))
        w = jnp.asarray(random.standard_normal((o, c // groups, k, k), np.float32))
        layer = functools.partial(conv, bias=None, stride=stride, padding=padding, groups=groups)
        runs: dict[str, Any] = {}
        for way in ("xla", "auto"):
            lowerings(convolution=way)
            both = functools.partial(_with_gradients, layer)  # a new one, or JAX knows it already
            runs[way] = jax.jit(both).lower(x, w).compile()
            jax.block_until_ready(runs[way](x, w))
        times: dict[str, list[float]] = {way: [] for way in runs}
        for _ in range(repeats):
            for way, run in runs.items():
                start = time.perf_counter()
                jax.block_until_ready(run(x, w))
                times[way].append((time.perf_counter() - start) * 1e3)
        xla, ours = (statistics.median(times[way]) for way in ("xla", "auto"))
        kind = "depthwise " if groups > 1 else ""
        rows.append(
            f"| {kind}{k}x{k}, {c} to {o} channels, {size}x{size}, stride {stride} | "
            f"{xla:.2f} | {ours:.2f} | {xla / ours:.1f} |"
        )
    lowerings(convolution="auto")
    return rows


def _with_gradients(layer: Any, x: Any, w: Any) -> Any:
    y, pull = jax.vjp(layer, x, w)
    return y, pull(y)


if __name__ == "__main__":
    print("\n".join(measure()))
