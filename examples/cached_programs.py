"""Compiled programs kept on disk: the second process compiles nothing.

    python examples/cached_programs.py /tmp/programs   # run it twice

Prints how long the first step took, how many programs XLA compiled and how many were read.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import leafax


def main(folder: str) -> None:
    leafax.cache(folder)
    leafax.manual_seed(0)
    model = leafax.nn.Sequential(
        leafax.nn.Linear(64, 256), leafax.nn.GELU(), leafax.nn.LayerNorm(256),
        leafax.nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = leafax.optim.AdamW(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x = leafax.from_numpy(rng.normal(size=(32, 64)).astype(np.float32))
    y = leafax.from_numpy(rng.integers(10, size=32))
    start, first = time.perf_counter(), 0.0
    for step in range(20):
        loss = leafax.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 0:
            leafax.synchronize()
            first = time.perf_counter() - start
    made = leafax.explain().compilations
    read = sum(compilation.read for compilation in made)
    print(f"loss {loss.item():.6f}")
    print(f"first step {first:.2f} s: {len(made) - read} compiled, {read} read from {folder}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "programs")
