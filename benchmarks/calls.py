"""The cost in Python of one call of a Flax model, which has 300 parameters and computes little."""

from __future__ import annotations

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

import leafax
from leafax.adapters import linen

LAYERS, WIDTH = 150, 8


class Deep(nn.Module):
    """150 dense layers: 300 parameters."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(LAYERS):
            x = nn.Dense(WIDTH)(x)
        return x


def measure(steps: int = 200) -> list[str]:
    """Microseconds that `model(x)` takes within a training step, frozen but its head and whole."""
    module = Deep()
    variables = module.init(jax.random.key(0), jnp.ones((1, WIDTH)))
    batches = [np.random.randn(16, WIDTH).astype("float32") for _ in range(steps)]
    rows = []
    for frozen in (True, False):
        model = linen.Model(module, jax.tree.map(jnp.copy, variables))
        if frozen:
            model.freeze("*")
            model.unfreeze(f"Dense_{LAYERS - 1}")
        optimizer = leafax.optim.SGD(model.parameters(), lr=1e-3)
        taken = []
        for batch in batches:
            x = leafax.from_numpy(batch)
            start = time.perf_counter()
            out = model(x)
            taken.append(time.perf_counter() - start)
            loss = (out * out).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        what = "all but the last layer frozen" if frozen else "all trained"
        rows.append(f"| {what} | {statistics.median(taken[20:]) * 1e6:.0f} |")
    return rows
