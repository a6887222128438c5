"""Layers in NumPy, one loop each: what results on any device are compared with."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

Array = Any


def softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x: Array, axis: int = -1) -> Array:
    return x - logsumexp(x, axis, True)


def logsumexp(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    top = x.max(axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def conv(x: Array, w: Array, stride: int = 1, padding: int = 0, groups: int = 1) -> Array:
    """Convolve `(N, C, ...)` with `(O, C / groups, ...)`."""
    dims = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * dims)
    out = [(x.shape[2 + d] - w.shape[2 + d]) // stride + 1 for d in range(dims)]
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    by_group = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    y = np.zeros((x.shape[0], groups, by_group.shape[1], *out), np.result_type(x, w))
    for place in itertools.product(*map(range, w.shape[2:])):
        cut = tuple(slice(p, p + (n - 1) * stride + 1, stride)
                    for p, n in zip(place, out, strict=True))  # fmt: skip
        y += np.einsum("goc,ngc...->ngo...", by_group[(..., *place)], x[(..., *cut)])
    return y.reshape(x.shape[0], -1, *out)


def conv_transpose(x: Array, w: Array, stride: int = 1) -> Array:
    """Convolve what lies `stride` apart with the kernel `(C, O, ...)` turned round."""
    wide = np.zeros((*x.shape[:2], *[(n - 1) * stride + 1 for n in x.shape[2:]]), x.dtype)
    wide[(..., *[slice(None, None, stride)] * (x.ndim - 2))] = x
    turned = np.flip(w.swapaxes(0, 1), tuple(range(2, w.ndim)))
    return conv(wide, turned, padding=w.shape[2] - 1)


def pool(x: Array, size: int, reduce: Any) -> Array:
    """Reduce blocks of `size x size` that lie side by side."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // size, size, w // size, size)
    return reduce(blocks, (3, 5))


def normalize(x: Array, axes: tuple[int, ...], eps: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def attention(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return softmax(scores) @ v


def lstm(x: Array, w_ih: Array, w_hh: Array, bias: Array) -> Array:
    """Return all hidden states `(T, N, H)` of one layer that begins with zeros."""
    h = c = np.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
    seen = []
    for step in x:
        i, f, g, o = np.split(step @ w_ih.T + h @ w_hh.T + bias, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        seen.append(h)
    return np.stack(seen)


def cross_entropy(x: Array, labels: Array) -> Array:
    return -log_softmax(x)[np.arange(len(labels)), labels].mean()
