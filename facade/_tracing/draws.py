"""The op that takes the next key of a random number generator."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.program.op import Op


def _next_key(state: Any) -> tuple[Any, Any]:
    """Return a key for one random op, and the state after it."""
    base = jax.random.key(state[0], impl="threefry2x32")
    key = jax.random.fold_in(base, state[1].astype("uint32"))
    return jax.random.key_data(key), state + jnp.array([0, 1], "int64")


NEXT_KEY = Op(_next_key, name="next_key", differentiable=False)


def is_draw(entry: Any) -> bool:
    """Tell whether a program's entry takes a generator's next key."""
    return getattr(getattr(entry, "call", None), "op", None) is NEXT_KEY
