"""A barrier that keeps XLA from computing values before others are there."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def barrier(*arrays: Any, n: int) -> tuple[Any, ...]:
    """Return `arrays` as they are: the first `n` are known to XLA only when the others are.

    XLA:CPU drops optimization barriers before it merges equal ops and orders them, so
    `jax.checkpoint` alone saves nothing there. It cannot see through a conditional on bits of what
    is waited for.

    Args:
      arrays: any arrays; those after the first `n` are waited for.
      n: how many are held back.

    >>> import jax.numpy as jnp
    >>> barrier(jnp.ones(2), jnp.zeros(3), n=1)[0].tolist()
    [1.0, 1.0]
    """
    return jax.lax.platform_dependent(  # type: ignore[no-any-return]
        *arrays, cpu=lambda *a: _conditional(a, n), default=_optimization_barrier
    )


def _optimization_barrier(*arrays: Any) -> tuple[Any, ...]:
    return tuple(jax.lax.optimization_barrier(arrays))


def _conditional(arrays: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    hidden, arrived = arrays[:n], arrays[n:]
    words = [jnp.real(a.reshape(-1)[0]).astype("float32") for a in arrived if a.size]
    if not words:
        return _optimization_barrier(*arrays)
    bits = jax.lax.bitcast_convert_type(sum(words), jnp.uint32) >> 1
    always = bits < jnp.uint32(0x80000000)
    hidden = jax.lax.cond(always, lambda h: h, lambda h: tuple(map(_other, h)), hidden)
    return (*hidden, *arrived)


def _other(x: Any) -> Any:
    return ~x if x.dtype == bool else x + jnp.ones((), x.dtype)
