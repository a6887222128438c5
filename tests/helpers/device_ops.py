"""Ops by family, each with the same in NumPy and the data that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import leafax as t
import leafax.nn.functional as F
from helpers import numpy_references as ref

R = np.random.default_rng(20261127)


class Case(NamedTuple):
    """An op.

    Attributes:
      ours: takes tensors, `reference` arrays.
      inputs: arrays in float64, or of integers.
      smooth: it has a gradient.
      convolution: it is as exact as convolutions are.
    """

    ours: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    smooth: bool = True
    convolution: bool = False


def normal(*shape: int) -> np.ndarray:
    return R.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return R.uniform(0.3, 2.5, shape)


def unit(*shape: int) -> np.ndarray:
    return R.uniform(-0.9, 0.9, shape)


def spread(*shape: int) -> np.ndarray:
    """Numbers that lie apart, so that which is the largest does not hang on rounding."""
    n = int(np.prod(shape))
    return (R.permutation(n) - n / 2.3).reshape(shape) / 7


def whole(low: int, high: int, *shape: int) -> np.ndarray:
    return R.integers(low, high, shape)


A, B, P, U = normal(5, 7), normal(5, 7), positive(5, 7), unit(5, 7)
S, M = spread(6, 8), normal(6, 6)
SPD = M @ M.T + 6 * np.eye(6)


def _same(name: str, *inputs: np.ndarray, smooth: bool = True) -> Case:
    """Make the case of a function that NumPy has under the same name."""
    return Case(getattr(t, name), getattr(np, name), inputs, smooth)


elementwise = {
    **{name: _same(name, A) for name in (
        "exp", "sin", "cos", "tanh", "sinh", "cosh", "square", "expm1", "exp2", "abs")},
    **{name: _same(name, P) for name in ("log", "sqrt", "log2", "log10", "log1p", "reciprocal")},
    **{name: _same(name, U) for name in ("arcsin", "arccos", "arctan", "arctanh", "tan")},
    **{name: _same(name, A, smooth=False) for name in ("floor", "ceil", "trunc", "sign", "isnan")},
    **{name: _same(name, A, B) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{name: _same(name, A, P) for name in ("divide", "arctan2", "hypot", "logaddexp")},
    **{name: _same(name, A, B, smooth=False) for name in (
        "less", "greater_equal", "logical_and", "copysign", "fmod")},
    "power": Case(lambda x, y: x**y, np.power, (P, A)),
    "cube": Case(lambda x: x**3, lambda x: x**3, (A,)),
    "where": Case(lambda x, y: t.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y), (A, B)),
    "clamp": Case(lambda x: x.clamp(-0.5, 1), lambda x: np.clip(x, -0.5, 1), (A,)),
    "lerp": Case(lambda x, y: t.lerp(x, y, 0.3), lambda x, y: x + 0.3 * (y - x), (A, B)),
    "addcmul": Case(lambda x, y, z: t.addcmul(x, y, z, value=2), lambda x, y, z: x + 2 * y * z,
                    (A, B, P)),
    "rsqrt": Case(t.rsqrt, lambda x: 1 / np.sqrt(x), (P,)),
    "sigmoid": Case(t.sigmoid, ref.sigmoid, (A,)),
    "erf": Case(t.erf, ref.erf, (A,)),
    "remainder": Case(lambda x, y: x % y, lambda x, y: x % y, (A, P), smooth=False),
    "floor_divide": Case(lambda x, y: x // y, lambda x, y: x // y, (A, P), smooth=False),
    "broadcast": Case(lambda x, y: x + y[0] * 2 - 1, lambda x, y: x + y[0] * 2 - 1, (A, B)),
    "softplus": Case(F.softplus, lambda x: np.log1p(np.exp(x)), (A,)),
    "silu": Case(F.silu, lambda x: x * ref.sigmoid(x), (A,)),
    "gelu": Case(F.gelu, ref.gelu, (A,)),
    "relu": Case(F.relu, lambda x: np.maximum(x, 0), (A,)),
    "leaky_relu": Case(F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), (A,)),
}  # fmt: skip

reductions = {
    **{name: _same(name, A) for name in ("sum", "mean")},
    "sum over a dim": Case(lambda x: x.sum(0), lambda x: x.sum(0), (A,)),
    "var": Case(lambda x: x.var(1), lambda x: x.var(1, ddof=1), (A,)),
    "std": Case(lambda x: x.std(), lambda x: x.std(ddof=1), (A,)),
    "amax": Case(lambda x: x.amax(1), lambda x: x.max(1), (S,)),
    "min": Case(lambda x: x.min(0).values, lambda x: x.min(0), (S,)),
    "argmax": Case(lambda x: x.argmax(1), lambda x: x.argmax(1), (S,), smooth=False),
    "prod": Case(lambda x: x.prod(1), lambda x: x.prod(1), (P,)),
    "cumsum": Case(lambda x: x.cumsum(1), lambda x: x.cumsum(1), (A,)),
    "cumprod": Case(lambda x: x.cumprod(1), lambda x: x.cumprod(1), (P,)),
    "logsumexp": Case(lambda x: x.logsumexp(1), lambda x: ref.logsumexp(x, 1), (A,)),
    "norm": Case(lambda x: x.norm(), np.linalg.norm, (A,)),
    "norm of rows": Case(lambda x: t.linalg.vector_norm(x, 3, dim=1),
                         lambda x: (np.abs(x) ** 3).sum(1) ** (1 / 3), (A,)),
    "sort": Case(lambda x: x.sort(1).values, lambda x: np.sort(x, 1), (S,)),
    "argsort": Case(lambda x: x.argsort(1), lambda x: np.argsort(x, 1), (S,), smooth=False),
    "topk": Case(lambda x: x.topk(3, 1).values, lambda x: -np.sort(-x, 1)[:, :3], (S,)),
    "median": Case(lambda x: x.median(1).values,
                   lambda x: np.sort(x, 1)[:, (x.shape[1] - 1) // 2], (S,)),
    "all": Case(lambda x: (x > -9).all(1), lambda x: (x > -9).all(1), (A,), smooth=False),
    "any": Case(lambda x: (x > 1).any(), lambda x: (x > 1).any(), (A,), smooth=False),
    "count_nonzero": Case(lambda x: (x > 0).sum(1), lambda x: (x > 0).sum(1), (A,), smooth=False),
    "softmax": Case(lambda x: x.softmax(1), ref.softmax, (A,)),
    "log_softmax": Case(lambda x: F.log_softmax(x, 0), lambda x: ref.log_softmax(x, 0), (A,)),
}  # fmt: skip

_I = np.array([[3, 0, 1], [2, 2, 5], [1, 4, 0]])


def _written(x: Any) -> Any:
    x = x.clone() if isinstance(x, t.Tensor) else x.copy()
    x[1:3] = x[0] * 2
    x[:, 0] *= 3
    return x


def _added_at(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = x.copy()
    np.add.at(x, [1, 1, 4], y[:3])
    return x


shapes = {
    "reshape": Case(lambda x: x.reshape(7, 5), lambda x: x.reshape(7, 5), (A,)),
    "transpose": Case(lambda x: x.t().contiguous(), lambda x: x.T, (A,)),
    "permute": Case(lambda x: x.permute(2, 0, 1) * 2, lambda x: x.transpose(2, 0, 1) * 2,
                    (normal(2, 3, 4),)),
    "cat": Case(lambda x, y: t.cat([x, y], 1), lambda x, y: np.concatenate([x, y], 1), (A, B)),
    "stack": Case(lambda x, y: t.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), (A, B)),
    "chunks": Case(lambda x: x.chunk(2, 1)[1] * 3, lambda x: x[:, 4:] * 3, (A,)),
    "flip": Case(lambda x: x.flip(1), lambda x: x[:, ::-1], (A,)),
    "roll": Case(lambda x: x.roll(2, 0), lambda x: np.roll(x, 2, 0), (A,)),
    "tril": _same("tril", A),
    "pad": Case(lambda x: F.pad(x, (1, 2), value=3.0),
                lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=3.0), (A,)),
    "expand": Case(lambda x: x[:, None].expand(5, 2, 7) * 1, lambda x: np.stack([x, x], 1), (A,)),
    "slices": Case(lambda x: x[1:4, ::2], lambda x: x[1:4, ::2], (A,)),
    "rows by index": Case(lambda x: x[[3, 0, 3]], lambda x: x[[3, 0, 3]], (A,)),
    "mask": Case(lambda x: x.masked_fill(x > 0, 9.0), lambda x: np.where(x > 0, 9.0, x), (A,)),
    "gather": Case(lambda x, i: x.gather(1, i), lambda x, i: np.take_along_axis(x, i, 1),
                   (normal(3, 6), _I)),
    "index_select": Case(lambda x, i: x.index_select(1, i[0]), lambda x, i: x[:, i[0]],
                         (A, _I)),
    "index_add": Case(lambda x, y: x.index_add(0, t.tensor([1, 1, 4]), y[:3]), _added_at, (A, B)),
    "writes": Case(_written, _written, (A,)),
    "diagonal": Case(lambda x: x.diagonal() * 2, lambda x: np.diagonal(x) * 2, (A,)),
    "repeat": Case(lambda x: x.repeat(2, 1), lambda x: np.tile(x, (2, 1)), (A,)),
    "unfold": Case(lambda x: x.unfold(1, 3, 2) * 1,
                   lambda x: np.stack([x[:, i : i + 3] for i in (0, 2, 4)], 1), (A,)),
    "one_hot": Case(lambda i: F.one_hot(i, 6), lambda i: np.eye(6, dtype=int)[i], (_I,),
                    smooth=False),
}  # fmt: skip

linear_algebra = {
    "matmul": Case(t.matmul, np.matmul, (normal(9, 33), normal(33, 17))),
    "matmul of batches": Case(t.matmul, np.matmul, (normal(3, 1, 4, 5), normal(2, 5, 6))),
    "matmul by vector": Case(t.mv, np.matmul, (A, normal(7))),
    "einsum": Case(lambda x, y: t.einsum("bij,bkj->ibk", x, y),
                   lambda x, y: np.einsum("bij,bkj->ibk", x, y),
                   (normal(2, 3, 4), normal(2, 5, 4))),
    "addmm": Case(lambda c, x, y: t.addmm(c, x, y, beta=0.5, alpha=2),
                  lambda c, x, y: 0.5 * c + 2 * x @ y, (normal(5, 3), A, normal(7, 3))),
    "outer": _same("outer", normal(4), normal(5)),
    "solve": Case(t.linalg.solve, np.linalg.solve, (SPD, normal(6, 3))),
    "inv": Case(t.linalg.inv, np.linalg.inv, (SPD / 4,)),
    "slogdet": Case(lambda x: t.linalg.slogdet(x).logabsdet, lambda x: np.linalg.slogdet(x)[1],
                    (SPD,)),
    "cholesky": Case(t.linalg.cholesky, np.linalg.cholesky, (SPD,), smooth=False),
    "qr": Case(lambda x: t.linalg.qr(x).R.abs(), lambda x: np.abs(np.linalg.qr(x)[1]),
               (normal(7, 4),)),
    "svdvals": Case(t.linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), (A,)),
    "eigvalsh": Case(lambda x: t.linalg.eigvalsh(x + x.mT), lambda x: np.linalg.eigvalsh(x + x.T),
                     (M,)),
    "triangular": Case(
        lambda x, y: t.linalg.solve_triangular(x, y, upper=False),
        lambda x, y: np.linalg.solve(np.tril(x), y), (SPD, normal(6, 2))),
    "pinv": Case(t.linalg.pinv, np.linalg.pinv, (normal(7, 3),)),
    "matrix_power": Case(lambda x: t.linalg.matrix_power(x / 4, 3),
                         lambda x: np.linalg.matrix_power(x / 4, 3), (M,)),
}  # fmt: skip

_X2, _W2 = normal(2, 4, 8, 8), normal(6, 4, 3, 3)
_Q, _K, _V = (normal(2, 2, 5, 4) for _ in range(3))
_LABELS = whole(0, 7, 5)

layers = {
    "linear": Case(F.linear, lambda x, w, b: x @ w.T + b, (A, normal(3, 7), normal(3))),
    "conv1d": Case(lambda x, w: F.conv1d(x, w, padding=1), lambda x, w: ref.conv(x, w, padding=1),
                   (normal(2, 3, 9), normal(4, 3, 3)), True, True),
    "conv2d": Case(F.conv2d, ref.conv, (_X2, _W2), True, True),
    "conv2d, strided": Case(lambda x, w: F.conv2d(x, w, stride=2, padding=1),
                            lambda x, w: ref.conv(x, w, 2, 1), (_X2, _W2), True, True),
    "conv2d, grouped": Case(lambda x, w: F.conv2d(x, w, groups=2),
                            lambda x, w: ref.conv(x, w, groups=2),
                            (_X2, normal(6, 2, 3, 3)), True, True),
    "conv2d of each channel": Case(
        lambda x, w: F.conv2d(x, w, padding=1, groups=4),
        lambda x, w: ref.conv(x, w, padding=1, groups=4), (_X2, normal(4, 1, 3, 3)), True, True),
    "conv3d": Case(F.conv3d, ref.conv, (normal(1, 2, 4, 4, 4), normal(3, 2, 2, 2, 2)), True, True),
    "conv_transpose2d": Case(lambda x, w: F.conv_transpose2d(x, w, stride=2),
                             lambda x, w: ref.conv_transpose(x, w, 2),
                             (normal(2, 3, 4, 4), normal(3, 2, 3, 3)), True, True),
    "max_pool2d": Case(lambda x: F.max_pool2d(x, 2), lambda x: ref.pool(x, 2, np.max),
                       (spread(2, 3, 4, 6),)),
    "avg_pool2d": Case(lambda x: F.avg_pool2d(x, 2), lambda x: ref.pool(x, 2, np.mean),
                       (normal(2, 3, 4, 6),)),
    "batch_norm": Case(lambda x: F.batch_norm(x, None, None, training=True),
                       lambda x: ref.normalize(x, (0, 2, 3)), (_X2,)),
    "layer_norm": Case(lambda x: F.layer_norm(x, (7,)), lambda x: ref.normalize(x, (1,)), (A,)),
    "group_norm": Case(
        lambda x: F.group_norm(x, 2),
        lambda x: ref.normalize(x.reshape(2, 2, -1), (2,)).reshape(x.shape), (_X2,)),
    "embedding": Case(lambda w, i: F.embedding(i, w), lambda w, i: w[i], (A, _I % 5)),
    "cross_entropy": Case(F.cross_entropy, ref.cross_entropy, (A, _LABELS)),
    "mse_loss": Case(F.mse_loss, lambda x, y: ((x - y) ** 2).mean(), (A, B)),
    "binary_cross_entropy": Case(
        F.binary_cross_entropy_with_logits,
        lambda x, y: (np.log1p(np.exp(x)) - x * y).mean(), (A, positive(5, 7) / 3)),
    "attention": Case(F.scaled_dot_product_attention, ref.attention, (_Q, _K, _V)),
    "attention, causal": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: ref.attention(q, k, v, True), (_Q, _K, _V)),
    "interpolate": Case(lambda x: F.interpolate(x, scale_factor=2),
                        lambda x: x.repeat(2, 2).repeat(2, 3), (normal(1, 2, 3, 3),)),
}  # fmt: skip

FAMILIES = {
    "elementwise": elementwise, "reductions": reductions, "shapes": shapes,
    "linear algebra": linear_algebra, "layers": layers,
}  # fmt: skip
