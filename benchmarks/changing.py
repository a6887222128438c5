"""Loops around a model whose programs are long, or never the same twice.

    python benchmarks/changing.py            # all
    python benchmarks/changing.py rk4 maml   # some

MAML, a solver, a sampler and ragged batches call a small Flax model many times in each step; the
hand-written contender is what one writes in JAX for it. A chain of 1000 ops, and writes to 700
places, are compared with PyTorch. The slowest of the later steps tells whether anything stalls.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen

import leafax
from leafax.adapters.linen import Model

Step = Callable[[int], float]
STEPS = 24
WARM = 6  # steps that may compile


class Net(linen.Module):
    """Two hidden layers."""

    width: int
    out: int

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = linen.relu(linen.Dense(self.width)(x))
        return linen.Dense(self.out)(x)


class Cell(linen.Module):
    """A recurrent cell that returns its state."""

    @linen.compact
    def __call__(self, h: Any, x: Any) -> Any:
        return linen.GRUCell(32)(h, x)[0]


@cache
def _made(module: linen.Module, *shapes: tuple[int, ...]) -> Any:
    return module.init(jax.random.key(0), *map(jnp.zeros, shapes))


def _copied(variables: Any) -> Any:
    return jax.tree.map(jnp.copy, variables)


def _trained(variables: Any, loss: Callable[..., Any]) -> Step:
    """Return a hand-written step: `loss(variables, i)` gives a jitted loss and its arrays."""
    adam = optax.adam(1e-3)

    @jax.jit
    def step(v: Any, state: Any, *arrays: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(v, *arrays)
        updates, state = adam.update(gradient, state, v)
        return optax.apply_updates(v, updates), state, value

    held = [variables, adam.init(variables)]

    def run(*arrays: Any) -> float:
        held[0], held[1], value = step(*held, *arrays)
        return float(value)

    return run


# ------------------------------------------------------------------------------- solver


def _solved(f: Callable[[Any], Any], x: Any, h: float = 0.05) -> Any:
    k1 = f(x)
    k2 = f(x + h / 2 * k1)
    k3 = f(x + h / 2 * k2)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))


def rk4(who: str) -> Step:
    """Fit a vector field through 20 steps of Runge and Kutta: 80 calls."""
    net = Net(50, 2)
    start = np.random.default_rng(0).normal(size=(16, 2)).astype("f")
    end = start[:, ::-1].copy()
    if who == "jax.jit":

        def loss(v: Any, x: Any, y: Any) -> Any:
            for _ in range(20):
                x = _solved(partial(net.apply, v), x)
            return ((x - y) ** 2).mean()

        run = _trained(_made(net, (1, 2)), loss)
        return lambda i: run(start, end)
    model = Model(net, _copied(_made(net, (1, 2))))
    adam = leafax.optim.Adam(model.parameters(), lr=1e-3)

    def step(i: int) -> float:
        x, y = leafax.from_numpy(start), leafax.from_numpy(end)
        adam.zero_grad()
        for _ in range(20):
            x = _solved(model, x)
        value = ((x - y) ** 2).mean()
        value.backward()
        adam.step()
        return float(value.item())

    return step


# --------------------------------------------------------------------------------- MAML


def _tasks(i: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(i)
    x = rng.uniform(-5, 5, (4, 20, 1)).astype("f")
    y = rng.uniform(0.1, 5, (4, 1, 1)) * np.sin(x - rng.uniform(0, 3, (4, 1, 1)))
    return x, y.astype("f")


def maml(who: str) -> Step:
    """Learn to learn: 4 tasks of 3 inner steps, differentiated through."""
    net = Net(40, 1)
    if who == "jax.jit":

        def error(v: Any, x: Any, y: Any) -> Any:
            return ((net.apply(v, x) - y) ** 2).mean()

        def loss(v: Any, xs: Any, ys: Any) -> Any:
            total = 0
            for x, y in zip(xs, ys, strict=True):
                fast = v
                for _ in range(3):
                    gradient = jax.grad(error)(fast, x[:10], y[:10])
                    fast = jax.tree.map(lambda a, b: a - 0.01 * b, fast, gradient)
                total = total + error(fast, x[10:], y[10:])
            return total / 4

        run = _trained(_made(net, (1, 1)), loss)
        return lambda i: run(*_tasks(i))
    model = Model(net, _copied(_made(net, (1, 1))))
    adam = leafax.optim.Adam(model.parameters(), lr=1e-3)
    parameters = dict(model.named_parameters())

    def step(i: int) -> float:
        total: Any = 0
        adam.zero_grad()
        for x, y in zip(*map(leafax.from_numpy, _tasks(i)), strict=True):
            fast = parameters
            for _ in range(3):
                value = ((model.functional_call(fast, x[:10]) - y[:10]) ** 2).mean()
                found = leafax.autograd.grad(value, list(fast.values()), create_graph=True)
                fast = {n: p - 0.01 * g for (n, p), g in zip(fast.items(), found, strict=True)}
            total = total + ((model.functional_call(fast, x[10:]) - y[10:]) ** 2).mean()
        total = total / 4
        total.backward()
        adam.step()
        return float(total.item())

    return step


# ------------------------------------------------------------------------------ sampler


def sampler(who: str) -> Step:
    """Draw from a diffusion model by 100 steps."""
    net, turns = Net(64, 2), 100
    betas = np.linspace(1e-4, 0.02, turns)
    alphas = np.cumprod(1 - betas)
    numbers = [
        (t / turns, betas[t] / (1 - alphas[t]) ** 0.5, (1 - betas[t]) ** 0.5, betas[t] ** 0.5)
        for t in reversed(range(turns))
    ]
    numbers = [tuple(map(float, four)) for four in numbers]
    if who == "jax.jit":
        variables = _made(net, (1, 3))

        @jax.jit
        def turn(v: Any, key: Any, x: Any, t: Any, a: Any, b: Any, c: Any) -> Any:
            noise = net.apply(v, jnp.concatenate([x, jnp.full((32, 1), t)], 1))
            return (x - a * noise) / b + c * jax.random.normal(key, x.shape)

        def run(i: int) -> float:
            keys = jax.random.split(jax.random.key(i), turns + 1)
            x = jax.random.normal(keys[-1], (32, 2))
            for key, four in zip(keys, numbers, strict=False):
                x = turn(variables, key, x, *four)
            return float(x.sum())

        return run
    model = Model(net, _copied(_made(net, (1, 3)))).eval()

    def step(i: int) -> float:
        with leafax.no_grad():
            x = leafax.randn(32, 2)
            for t, a, b, c in numbers:
                noise = model(leafax.cat([x, leafax.full((32, 1), t)], 1))
                x = (x - a * noise) / b + c * leafax.randn_like(x)
            return float(x.sum().item())

    return step


# ------------------------------------------------------------------------ ragged batches


def _ragged(i: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(i)
    return rng.normal(size=(rng.integers(5, 40), 8, 4)).astype("f"), rng.normal(size=8).astype("f")


def ragged(who: str) -> Step:
    """Train a recurrent cell on batches of other lengths; by hand they are padded to 40."""
    cell = Cell()
    shapes = (8, 32), (8, 4)
    if who == "jax.jit":

        def loss(v: Any, x: Any, y: Any, n: Any) -> Any:
            def turn(h: Any, row: Any) -> Any:
                k, step = row
                return jnp.where(k < n, cell.apply(v, h, step), h), None

            h, _ = jax.lax.scan(turn, jnp.zeros((8, 32)), (jnp.arange(40), x))
            return ((h.mean(1) - y) ** 2).mean()

        run = _trained(_made(cell, *shapes), loss)

        def padded(i: int) -> float:
            x, y = _ragged(i)
            return run(np.concatenate([x, np.zeros((40 - len(x), 8, 4), "f")]), y, len(x))

        return padded
    model = Model(cell, _copied(_made(cell, *shapes)))
    adam = leafax.optim.Adam(model.parameters(), lr=1e-3)

    def step(i: int) -> float:
        x, y = map(leafax.from_numpy, _ragged(i))
        h = leafax.zeros(8, 32)
        for row in x:
            h = model(h, row)
        value = ((h.mean(1) - y) ** 2).mean()
        adam.zero_grad()
        value.backward()
        adam.step()
        return float(value.item())

    return step


# ------------------------------------------------------------------------- long programs


def chain(who: str) -> Step:
    """Differentiate 1000 ops on four numbers."""
    lib: Any = leafax if who == "leafax" else importlib.import_module(who)
    x = lib.ones(4).requires_grad_()

    def step(i: int) -> float:
        y = x
        for _ in range(500):
            y = y * 1.01
            y = y + 0.1
        x.grad = None
        y.sum().backward()
        return float(x.grad.sum().item())

    return step


def writes(who: str) -> Step:
    """Write 700 elements of a vector, one by one, and differentiate."""
    lib: Any = leafax if who == "leafax" else importlib.import_module(who)
    w = lib.ones(3).requires_grad_()

    def step(i: int) -> float:
        x = lib.zeros(3000)
        for k in range(700):
            x[k] = w[k % 3]
        w.grad = None
        x.sum().backward()
        return float(w.grad.sum().item())

    return step


LOOPS: dict[str, tuple[Callable[[str], Step], str]] = {
    "RK4, 80 calls": (rk4, "jax.jit"),
    "MAML, 4 tasks of 3 steps": (maml, "jax.jit"),
    "diffusion, 100 turns": (sampler, "jax.jit"),
    "ragged batches": (ragged, "jax.jit"),
    "chain of 1000": (chain, "torch"),
    "700 writes": (writes, "torch"),
}


def measure(name: str, steps: int = STEPS) -> list[str]:
    """Return the rows of one loop, whose contenders take turns."""
    make, other = LOOPS[name]
    names = ["leafax"]
    if other == "jax.jit" or importlib.util.find_spec(other):
        names.append(other)
    runs = {who: make(who) for who in names}
    times: dict[str, list[float]] = {who: [] for who in names}
    for i in range(steps):
        for who, run in runs.items():
            start = time.perf_counter()
            run(i)
            times[who].append(time.perf_counter() - start)
    half = steps // 2
    ours = times["leafax"][half:]
    rows = []
    for who, found in times.items():
        ratio = statistics.median(a / b for a, b in zip(ours, found[half:], strict=True))
        rows.append(
            f"| {name} | {who} | {statistics.median(found[half:]) * 1e3:.2f} | {ratio:.1f} | "
            f"{sum(found[:WARM]):.2f} | {max(found[WARM:]) * 1e3:.0f} |"
        )
    return rows


HEAD = [
    "| loop | | ms a step | leafax / it | first 6 steps, s | slowest step after, ms |",
    "| --- | --- | --- | --- | --- | --- |",
]


def rows(steps: int = STEPS) -> list[str]:
    """List the rows of a table: milliseconds a step, leafax and what it is compared with."""
    leafax.explain(clear=True)
    return [row for name in LOOPS for row in measure(name, steps)]


def main() -> None:
    asked = sys.argv[1:]
    chosen = [n for n in LOOPS if not asked or any(n.lower().startswith(a) for a in asked)]
    print(*HEAD, *[row for name in chosen for row in measure(name)], sep="\n")


if __name__ == "__main__":
    main()
