"""A barrier that keeps XLA from merging a recomputation with what it has computed already."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.program.op import Op


def _barrier(*arrays: Any, n: int) -> tuple[Any, ...]:
    """`arrays` as they are: the first `n` are known to XLA only when the others are.

    XLA:CPU drops optimization barriers before it merges equal ops, so `jax.checkpoint` alone
    saves nothing there. It cannot see through a conditional on a bit of the gradient.
    """
    return jax.lax.platform_dependent(  # type: ignore[no-any-return]
        *arrays, cpu=lambda *a: _conditional(a, n), default=_optimization_barrier
    )


def _optimization_barrier(*arrays: Any) -> tuple[Any, ...]:
    return tuple(jax.lax.optimization_barrier(arrays))


def _conditional(arrays: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    hidden, arrived = arrays[:n], arrays[n:]
    words = [a for a in arrived if a.size]
    if not words:
        return _optimization_barrier(*arrays)
    word = jnp.real(words[0].reshape(-1)[0]).astype("float32")
    bits = jax.lax.bitcast_convert_type(word, jnp.uint32) >> 1
    always = bits < jnp.uint32(0x80000000)
    hidden = jax.lax.cond(always, lambda h: h, lambda h: tuple(map(_other, h)), hidden)
    return (*hidden, *arrived)


def _other(x: Any) -> Any:
    return ~x if x.dtype == bool else x + jnp.ones((), x.dtype)


BARRIER = Op(_barrier, name="optimization_barrier", differentiable=False)
