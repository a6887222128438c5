"""Normalization against live PyTorch."""

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same, same_error, to_jax

from leafax.functional.ops.nn import batch_norm, norm

G = torch.Generator().manual_seed(0)
X = torch.randn(3, 6, 4, generator=G) * 3 + 5
W6, B6, W4, B4 = (torch.randn(n, generator=G) for n in (6, 6, 4, 4))
HALVES = (torch.bfloat16, torch.float16)
o = torch.ones


@pytest.mark.parametrize("count", [1, 2])
def test_layer_norm(count):
    shape = tuple(X.shape[-count:])
    w, b = torch.randn(shape, generator=G), torch.randn(shape, generator=G)
    for args in [(), (w,), (w, b)]:
        ours = lambda x, *a: norm.layer_norm(x, shape, *a)  # noqa: E731
        theirs = lambda x, *a: F.layer_norm(x, shape, *a)  # noqa: E731
        compare(ours, theirs, [X, *args])
        compare(ours, theirs, [X, *args], HALVES, grad=False, tolerance=4e-2)
    with jax.enable_x64(True):
        x = X.bfloat16()
        same(norm.layer_norm(to_jax(x), shape, to_jax(w)), F.layer_norm(x, shape, w), 4e-2)


@pytest.mark.parametrize("eps", [None, 1e-3])
def test_rms_norm(eps):
    for args in [(), (W4,)]:
        ours = lambda x, *a: norm.rms_norm(x, (4,), *(a or (None,)), eps)  # noqa: E731
        theirs = lambda x, *a: F.rms_norm(x, (4,), *(a or (None,)), eps)  # noqa: E731
        compare(ours, theirs, [X * 1e-3, *args])
        compare(ours, theirs, [X * 1e-2, *args], HALVES, grad=False, tolerance=4e-2)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups):
    ours = lambda x, *a: norm.group_normalized(x, groups, *(a or (None, None)), 1e-5)  # noqa: E731
    theirs = lambda x, *a: F.group_norm(x, groups, *a)  # noqa: E731
    for args in [(), (W6, B6)]:
        compare(ours, theirs, [X, *args])
    compare(ours, theirs, [X[..., None], W6, B6], HALVES, grad=False, tolerance=4e-2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_local_response_norm(size):
    compare(norm.local_response_norm, F.local_response_norm, [X], size=size, alpha=0.1)


def theirs_batch_norm(x, w, b, m, v, training, momentum, eps):
    m, v = (None if s is None else s.detach().clone() for s in (m, v))
    y = F.batch_norm(x, m, v, w, b, training, momentum, eps)
    return (y, m, v) if training and m is not None else y


@pytest.mark.quick(2)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 6), (3, 6, 4), (2, 6, 3, 4)], ids=str)
def test_batch_norm(training, shape):
    x = torch.randn(shape, generator=G) * 2 + 1
    m, v = torch.randn(6, generator=G), torch.rand(6, generator=G) + 0.5
    rest = (training, 0.1, 1e-5)

    def ours(x, w, b):
        stats = (to_jax(s).astype(x.dtype) for s in (m, v))
        return batch_norm.native_batch_norm(x, w, b, *stats, *rest)

    def theirs(x, w, b):
        return theirs_batch_norm(x, w, b, m.to(x.dtype), v.to(x.dtype), *rest)

    compare(ours, theirs, [x, W6, B6])
    compare(ours, theirs, [x, W6, B6], (torch.bfloat16,), grad=False, tolerance=6e-2)
    if training:
        body = batch_norm.native_batch_norm
        compare(
            lambda x: body(x, None, None, None, None, *rest),
            lambda x: F.batch_norm(x, None, None, training=True),
            [x],
        )


@pytest.mark.parametrize("stats", [True, False])
def test_instance_norm(stats):
    m, v = torch.randn(6, generator=G), torch.rand(6, generator=G) + 0.5
    body = batch_norm.native_instance_norm

    def theirs(x, w, b):
        means = [s.to(x.dtype).clone() for s in (m, v)]
        y = F.instance_norm(x, *means, w, b, stats, 0.1, 1e-5)
        return (y, *means) if stats else y

    compare(
        lambda x, w, b: body(
            x, w, b, *(to_jax(s).astype(x.dtype) for s in (m, v)), stats, 0.1, 1e-5
        ),
        theirs, [X, W6, B6],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("layer_norm", (X, (3,))), ("layer_norm", (X, (2, 3, 6, 4))), ("layer_norm", (X, ())),
        ("layer_norm", (X, (4,), W6)), ("layer_norm", (X, (4,), W4, W6)),
        ("layer_norm", (X.long(), (4,))), ("layer_norm", (X, (4,), W4.double())),
        ("layer_norm", (X.double(), (4,), W4)),
        ("rms_norm", (X, (3,))), ("rms_norm", (X, (3, 4))), ("rms_norm", (X, (4,), W6)),
        ("rms_norm", (X, ())), ("rms_norm", (X.long(), (4,))),
        ("local_response_norm", (X[0], 2)),
    ],
)  # fmt: skip
def test_errors(name, args):
    same_error(lambda: getattr(norm, name)(*map(to_jax, args)), lambda: getattr(F, name)(*args))


@pytest.mark.parametrize(
    ("x", "m", "v", "w", "b", "training"),
    [
        (X, W4, W6, None, None, False), (X, W6, W4, None, None, False),
        (X, W6, W6, W4, None, False), (X, W6, W6, W6, W4, False),
        (X, None, None, None, None, False), (X, W6, None, None, None, False),
        (o(1, 6), None, None, None, None, True),
        (o(6), W6, W6, None, None, False), (X.long(), W6, W6, None, None, False),
        (X, W6.double(), W6.double(), None, None, False), (X.double(), W6, W6, None, None, False),
    ],
)  # fmt: skip
def test_batch_norm_errors(x, m, v, w, b, training):
    same_error(
        lambda: batch_norm.native_batch_norm(*map(to_jax, (x, w, b, m, v)), training, 0.1, 1e-5),
        lambda: F.batch_norm(x, m, v, w, b, training),
    )


def test_instance_norm_errors():
    for x, w, stats in [(o(2, 6, 1), None, True), (o(2, 6), None, True), (X, None, False)]:
        same_error(
            lambda x=x, w=w, s=stats: batch_norm.native_instance_norm(
                to_jax(x), w, None, None, None, s, 0.1, 1e-5
            ),
            lambda x=x, w=w, s=stats: F.instance_norm(x, None, None, w, use_input_stats=s),
        )


def test_empty_batch_keeps_running_statistics():
    with jax.enable_x64(True):
        x, m = np.zeros((0, 6, 3), np.float32), np.ones(6, np.float32)
        y, mean, var = batch_norm.native_batch_norm(
            jax.numpy.asarray(x), None, None, jax.numpy.asarray(m), jax.numpy.asarray(m), True, 0.1,
            1e-5,
        )  # fmt: skip
    assert y.shape == x.shape and (mean == 1).all() and (var == 1).all()
