"""What the choice of a lowering gains: convolutions by XLA against what leafax chooses, in turns.

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

from leafax.functional import TABLE, lowerings

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
