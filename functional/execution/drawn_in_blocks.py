"""Draws in blocks: one compiled program for all shapes and all bounds.

XLA takes 0.2 s to compile a draw, and the parameters of a model have many shapes. A word of the
generator depends on its place and the key alone, so a block of places is as good as an array.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry2x32_p

from ..program.program import Call, Node, Slot, fill

_BLOCK = 1 << 15
_MOST = 1 << 28  # elements; a larger array may not fit the memory, which XLA says
_FLOAT = np.dtype("float32")
_ONE = np.uint32(0x3F800000)  # the bits of 1.0
_LEAST = np.nextafter(np.float32(-1), np.float32(0))
_SQRT2 = np.float32(math.sqrt(2))

Bounds = tuple[Any, Any]


def _unit(key: Any, place: Any) -> Any:
    """Draw uniform numbers on [0, 1) as `jax.random` does, of the words from `place` on."""
    low = jax.lax.iota(jnp.uint32, _BLOCK) + place
    first, second = threefry2x32_p.bind(key[0], key[1], jnp.zeros_like(low), low)
    bits = (first ^ second) >> np.uint32(9) | _ONE
    return jax.lax.bitcast_convert_type(bits, jnp.float32) - np.float32(1)


@jax.jit
def _uniform(key: Any, place: Any, factor: Any, shift: Any) -> Any:
    return _unit(key, place) * factor + shift


@jax.jit
def _normal(key: Any, place: Any, factor: Any, shift: Any) -> Any:
    drawn = jnp.maximum(_LEAST, _unit(key, place) * (np.float32(1) - _LEAST) + _LEAST)
    return _SQRT2 * jax.lax.erf_inv(drawn) * factor + shift


def _between(key: Any, input: Any, from_: Any = 0.0, to: Any = 1.0) -> Bounds:
    low, high = np.float32(from_), np.float32(to)
    return high - low, low


def _around(key: Any, input: Any, mean: Any = 0.0, std: Any = 1.0) -> Bounds:
    return np.float32(std), np.float32(mean)


def _standard(*args: Any, **kwargs: Any) -> Bounds:
    return np.float32(1), np.float32(0)


#: By the op: what draws a block, and the factor and the shift that the op's arguments ask for.
_KINDS: dict[str, tuple[Any, Callable[..., Bounds]]] = {
    "uniform": (_uniform, _between),
    "fill.normal": (_normal, _around),
    "rand": (_uniform, _standard),
    "randn": (_normal, _standard),
}


def in_blocks(node: Node) -> Callable[..., list[Any]] | None:
    """Return the function that draws a node's float32 numbers in blocks; None for other nodes.

    The numbers are those of the op compiled for its shape, to the last bit.
    """
    call = node.call
    kind = _KINDS.get(call.op.qualified) if isinstance(call, Call) else None
    made = node.avals[0]
    if kind is None or made.dtype != _FLOAT or math.prod(made.shape) > _MOST:
        return None
    return functools.partial(_drawn, call, *kind, made.shape)


def overwrites(node: Node) -> bool:
    """Return True if a node draws in blocks over an array, of which it reads the shape alone."""
    call = node.call
    if not isinstance(call, Call) or call.op.qualified not in ("uniform", "fill.normal"):
        return False
    return call.args[:2] == (Slot(0), Slot(1)) and in_blocks(node) is not None


def _drawn(
    call: Call, draw: Any, bounds: Callable[..., Bounds], shape: tuple[int, ...], *arrays: Any
) -> list[Any]:
    factor, shift = bounds(*fill(call.args, arrays), **fill(call.kwargs, arrays))
    n = math.prod(shape)
    places = range(0, n, _BLOCK)
    blocks = [draw(arrays[0], np.uint32(place), factor, shift) for place in places]
    out = np.empty(n, _FLOAT)
    for place, block in zip(places, blocks, strict=True):
        out[place : place + _BLOCK] = np.asarray(block)[: n - place]
    return [out.reshape(shape)]
