"""A run of an optimizer on random parameters and gradients, to see what it does to frozen ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leafax.functional.program.paths import paths

PyTree = Any


class OptimizerProbe:
    """An optimizer, with random parameters and gradients to run it on."""

    STEPS = 4  # the first may have a learning rate of zero (a warm-up)

    def __init__(self, tx: Any, params: PyTree, chosen: PyTree) -> None:
        self.tx = tx
        self.chosen = chosen
        names = zip(paths(params), jax.tree.leaves(chosen), strict=True)
        self.frozen = [name for name, trainable in names if not trainable]
        rng = np.random.default_rng(0)
        self.params = self._random(rng, params)
        self.gradients = [self._random(rng, params) for _ in range(self.STEPS)]

    @staticmethod
    def _random(rng: np.random.Generator, params: PyTree) -> PyTree:
        def draw(leaf: Any) -> jax.Array:
            dtype = jnp.result_type(leaf)
            values = rng.normal(size=getattr(leaf, "shape", ()))
            inexact = jnp.issubdtype(dtype, jnp.inexact)
            return jnp.asarray(values if inexact else np.zeros_like(values), dtype)

        return jax.tree.map(draw, params)

    def run(self, scale: Callable[[int], float], frozen_scale: Callable[[int], float]) -> list[Any]:
        """Return updates of each step, as lists of leaves; gradients are scaled by step."""
        state = self.tx.init(self.params)
        steps = []
        for i, gradients in enumerate(self.gradients):
            scaled = self._scale(gradients, scale(i), frozen_scale(i))
            updates, state = self.tx.update(scaled, state, self.params)
            steps.append(jax.tree.leaves(updates))
        return steps

    def _scale(self, gradients: PyTree, scale: float, frozen_scale: float) -> PyTree:
        def scaled(gradient: jax.Array, trainable: bool) -> jax.Array:
            return (gradient * (scale if trainable else frozen_scale)).astype(gradient.dtype)

        return jax.tree.map(scaled, gradients, self.chosen)

    def leaves(self, steps: list[Any], trainable: bool) -> list[list[np.ndarray[Any, Any]]]:
        """Return the updates of frozen or of trainable leaves: one list of steps each."""
        kept = [i for i, yes in enumerate(jax.tree.leaves(self.chosen)) if yes == trainable]
        return [[np.asarray(step[i], "complex128") for step in steps] for i in kept]

    def moving_leaves(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"raw": [], "decay": [], "trained": []}
        still = self.leaves(self.run(_zero, _zero), False)
        moved = self.leaves(self.run(_one, _one), False)
        given = self.leaves([jax.tree.leaves(g) for g in self.gradients], False)
        for name, *updates in zip(self.frozen, still, moved, given, strict=True):
            for kind in _why(*updates):
                found[kind].append(name)
        return found

    def counts_frozen_gradients(self) -> bool:
        # Adam does not see a constant factor, so the frozen gradients are large in some steps only.
        small = self.leaves(self.run(_one, _zero), True)
        large = self.leaves(self.run(_one, lambda i: 1e4 if i % 2 else 0.0), True)
        return any(
            not np.allclose(a, b, rtol=1e-3, atol=1e-30) for a, b in zip(small, large, strict=True)
        )

    def holds_frozen_state(self) -> bool:
        def size(params: PyTree) -> int:
            return sum(x.size for x in jax.tree.leaves(jax.eval_shape(self.tx.init, params)))

        # State that grows with the frozen leaves is theirs.
        def grow(leaf: jax.Array, trainable: bool) -> jax.Array:
            return leaf if trainable else jnp.stack([leaf, leaf])

        grown = jax.tree.map(grow, self.params, self.chosen)
        return size(grown) > size(self.params)


def _zero(step: int) -> float:
    return 0.0


def _one(step: int) -> float:
    return 1.0


def _why(still: list[Any], moved: list[Any], given: list[Any]) -> list[str]:
    """Return why one frozen leaf moves: kinds of findings, none if it does not.

    Args:
      still: its updates, step by step, with all gradients zero.
      moved: its updates with the gradients `given`.
    """
    kinds = []
    if any(map(np.any, still)):
        kinds.append("decay")
    pairs = [(m - s, g) for m, s, g in zip(moved, still, given, strict=True) if np.any(m - s)]
    if pairs:
        kinds.append("raw" if all(_ascends(u, g) for u, g in pairs) else "trained")
    return kinds


def _ascends(update: np.ndarray[Any, Any], gradient: np.ndarray[Any, Any]) -> bool:
    """Return True if the update is the gradient times a positive number."""
    factor = np.vdot(gradient, update).real / np.vdot(gradient, gradient).real
    return bool(factor > 0 and np.allclose(update, factor * gradient, rtol=1e-2, atol=1e-6))
