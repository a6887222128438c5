"""JAX's random primitives in NumPy, bit for bit, for keys of the Threefry generator.

A key is an array of its two words here, whatever stands in front of them. Source: Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3" (2011), with 20 rounds, counting as `jax.random` does
(`jax_threefry_partitionable`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..confined import confined
from .array_rules import Unsupported

Words = np.ndarray[Any, np.dtype[np.uint32]]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROTATIONS_BOTH_WAYS = [[(np.uint32(by), np.uint32(32 - by)) for by in r] for r in _ROTATIONS]
_PARITY = 0x1BD11BDA
_ONES = 0xFFFFFFFF
_FEW = 5  # pairs that Python is through with before NumPy is


def is_threefry(dtype: Any) -> bool:
    """Return True if an aval's dtype is that of Threefry's keys."""
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key)) and "fry" in str(dtype)


def threefry(key: Words, high: Words, low: Words) -> tuple[Words, Words]:
    """Hash each pair of words of the counter into two words.

    Args:
      key: words [2].
      high, low: of the counter, of one shape.
    """
    first, second = map(int, key)
    if low.size <= _FEW:
        pairs = zip(high.reshape(-1).tolist(), low.reshape(-1).tolist(), strict=True)
        found = [_of_ints(first, second, *pair) for pair in pairs]
        x, y = np.array(found, np.uint32).reshape(-1, 2).T
        return x.reshape(low.shape), y.reshape(low.shape)
    words = (first, second, first ^ second ^ _PARITY)
    x, y = high + np.uint32(first), low + np.uint32(second)
    turned = np.empty_like(x)
    for turn in range(5):
        for by, back in _ROTATIONS_BOTH_WAYS[turn % 2]:
            np.add(x, y, x)
            np.left_shift(y, by, turned)
            np.right_shift(y, back, y)
            np.bitwise_or(y, turned, y)
            np.bitwise_xor(y, x, y)
        np.add(x, np.uint32(words[(turn + 1) % 3]), x)
        np.add(y, np.uint32(words[(turn + 2) % 3] + turn + 1 & _ONES), y)
    return x, y


def _of_ints(first: int, second: int, x: int, y: int) -> tuple[int, int]:
    """Hash one pair of words by Python: a call of NumPy's takes as long as ten of its steps."""
    words = (first, second, first ^ second ^ _PARITY)
    x, y = x + first & _ONES, y + second & _ONES
    for turn in range(5):
        for by in _ROTATIONS[turn % 2]:
            x = x + y & _ONES
            y = (y << by | y >> 32 - by) & _ONES ^ x
        x = x + words[(turn + 1) % 3] & _ONES
        y = y + words[(turn + 2) % 3] + turn + 1 & _ONES
    return x, y


def _numbered(key: Words, shape: Sequence[int]) -> tuple[Words, Words]:
    """Return the words of the places of an array of this shape."""
    low = np.arange(math.prod(shape), dtype=np.uint32).reshape(shape)
    return threefry(key, np.zeros_like(low), low)


def _counting(given: Any) -> None:
    if given[0].shape or not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
        raise Unsupported


def _bits(given: Any, made: Any, *, bit_width: int, shape: Sequence[int]) -> Callable[..., Any]:
    _counting(given)

    def drawn(key: Words) -> Any:
        high, low = _numbered(key, shape)
        if bit_width == 64:
            return high.astype(np.uint64) << np.uint64(32) | low
        return (high ^ low).astype(f"uint{bit_width}")

    return drawn


def _seed(given: Any, made: Any, *, impl: Any) -> Callable[..., Any]:
    """Split a seed into the two words of its key. XLA does it where it runs."""
    if not confined or impl.name != "threefry2x32" or given[0].dtype.itemsize != 8:
        raise Unsupported
    _counting(given)
    return lambda seed: np.array([int(seed) >> 32 & _ONES, int(seed) & _ONES], np.uint32)


def _split(given: Any, made: Any, *, shape: Sequence[int]) -> Callable[..., Any]:
    _counting(given)
    return lambda key: np.stack(_numbered(key, shape), -1)


def _fold_in(given: Any, made: Any) -> Callable[..., Any]:
    _counting(given)
    return lambda key, data: np.stack(threefry(key, np.zeros_like(data), data), -1)


def _words(given: Any, made: Any, **parameters: Any) -> Callable[..., Any]:
    return lambda words: words


@functools.cache
def _compiled_erf_inv() -> Any:
    return jax.jit(jax.lax.erf_inv)


def _erf_inv(given: Any, made: Any) -> Callable[..., Any]:
    """Compute by XLA, which rounds in its own way: normal numbers must be the same anywhere.

    It is compiled for powers of 8 elements.
    """
    size = 8 ** max(1, math.ceil(math.log(max(given[0].size, 1), 8)))

    def inverse(x: Any) -> Any:
        if confined:
            from scipy import special  # as late as JAX imports it

            return special.erfinv(x)
        filled = np.zeros(size, x.dtype)
        filled[: x.size] = x.reshape(-1)
        return np.asarray(_compiled_erf_inv()(filled))[: x.size].reshape(x.shape)

    return inverse


RANDOM_RULES: dict[str, Callable[..., Any]] = {
    "random_seed": _seed, "random_wrap": _words, "random_unwrap": _words, "random_bits": _bits,
    "random_split": _split, "random_fold_in": _fold_in, "erf_inv": _erf_inv,
}  # fmt: skip
#: What computes words by the generator.
DRAWING = frozenset({"random_bits", "random_split", "random_fold_in"})
#: What takes keys; other rules would take a key's words for numbers.
OF_KEYS = frozenset({"slice", "squeeze", *RANDOM_RULES})
