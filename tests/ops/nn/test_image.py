"""Padding, resampling, rearrangements and distances against live PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same, same_error, to_jax

from leafax.functional.ops.nn import distance, interpolate
from leafax.functional.ops.nn import image as nn_image
from leafax.functional.ops.nn import pad as nn_pad

G = torch.Generator().manual_seed(0)
o = torch.ones
ONE = (torch.float32,)


def randn(*shape):
    return torch.randn(shape, generator=G)


X3, X4, X5 = randn(2, 3, 6), randn(2, 3, 6, 5), randn(1, 2, 4, 5, 3)


@pytest.mark.quick(10)
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("x", "pad"),
    [
        (X3, (2, 1)), (X3, (3, 0)), (X3, (-1, 2)), (X3, (-2, -1)), (X4, (1, 2, 3, 0)),
        (X4, (-1, 2, 1, -1)), (X5, (1, 2, 0, 1, 2, 1)), (X3[0], (2, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_pad(mode, x, pad):
    compare(nn_pad.pad, F.pad, [x], ONE, pad=pad, mode=mode)


def test_pad_constants():
    compare(nn_pad.pad, F.pad, [X4], ONE, pad=(1, 1), value=2.5)
    compare(nn_pad.pad, F.pad, [X4.long()], grad=False, pad=(1, 0, 2, 1), value=1.5)
    compare(nn_pad.pad, F.pad, [X4 > 0], grad=False, pad=(1, 0), value=True)


X = o(2, 4, 6, 6)


@pytest.mark.parametrize(
    "args",
    [
        (X, (1,)), (o(2), (1, 1, 1, 1)), (X, (-4, -4)), (X, (6, 6), "reflect"),
        (X, (6, 6, 0, 0), "reflect"), (X, (1, 1, 6, 0), "reflect"), (X, (1, 1), "circular"),
        (X, (7, 7, 1, 1), "circular"), (X, (1, 1), "foo"), (X, (1, 1, 1, 1), "reflect", 1.0),
        (o(2, 4, 6), (-4, -4), "replicate"), (o(1, 2, 4, 4, 4), (4,) * 6, "reflect"),
        (X[..., :0], (1, 1, 1, 1), "reflect"), (X, (-7, 0)), (X, (-4, -4, 1, 1), "circular"),
        (o(6), (1, 1), "reflect"),
    ],
    ids=lambda a: str(a[1:]),
)  # fmt: skip
def test_pad_errors(args):
    same_error(lambda: nn_pad.pad(*map(to_jax, args)), lambda: F.pad(*args))


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("x", "mode", "align"),
    [
        (X3, "nearest", None), (X4, "nearest", None), (X5, "nearest", None),
        (X4, "nearest-exact", None), (X3, "linear", False), (X3, "linear", True),
        (X4, "bilinear", False), (X4, "bilinear", True), (X5, "trilinear", False),
        (X4, "bicubic", False), (X4, "bicubic", True), (X4, "area", None),
    ],
    ids=lambda v: str(v) if not isinstance(v, torch.Tensor) else str(v.ndim),
)  # fmt: skip
def test_interpolate(x, mode, align):
    body = interpolate.interpolate
    for kwargs in ({"size": 7}, {"scale_factor": 2}, {"scale_factor": 0.7}):
        compare(body, F.interpolate, [x], ONE, mode=mode, align_corners=align, **kwargs)
    kwargs = {"scale_factor": 1.3, "recompute_scale_factor": True}
    compare(body, F.interpolate, [x], (), mode=mode, align_corners=align, **kwargs)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_interpolate_with_antialias(mode):
    body = interpolate.interpolate
    for kwargs in ({"size": (2, 3)}, {"scale_factor": (0.4, 1.7)}, {"size": (1, 9)}):
        compare(body, F.interpolate, [X4], ONE, mode=mode, antialias=True, **kwargs)
    if mode != "lanczos":
        kwargs = {"size": (2, 7), "align_corners": True}
        compare(body, F.interpolate, [X4], (), mode=mode, antialias=True, **kwargs)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_interpolated_bytes_are_exact(mode, antialias):
    """Weights are fixed-point numbers and each pass rounds and clips: an image as PIL makes it."""
    if mode == "lanczos" and not antialias:
        pytest.skip("PyTorch has no such mode")
    image = torch.randint(0, 256, (2, 3, 7, 11), dtype=torch.uint8, generator=G)
    for kwargs in ({"size": (3, 4)}, {"scale_factor": (1.7, 0.6)}, {"size": (9, 11)}):
        kwargs |= {"mode": mode, "antialias": antialias}
        same(interpolate.interpolate(to_jax(image), **kwargs), F.interpolate(image, **kwargs))


@pytest.mark.parametrize(
    ("x", "kwargs"),
    [
        (X4.long(), {"size": 3, "mode": "bilinear", "antialias": True}),
        (X4.long(), {"size": 3, "mode": "bilinear"}), (X4.long(), {"size": 3}),
        (X5.long(), {"size": 3}), (X5.byte(), {"size": 3, "mode": "trilinear"}),
        (X4.bfloat16(), {"size": 3, "mode": "bicubic", "antialias": True}),
        (X4, {"size": 3, "mode": "lanczos"}),
        (X4, {"size": 3, "mode": "lanczos", "antialias": True, "align_corners": True}),
        (X, {}), (X, {"size": 3, "scale_factor": 2}), (X, {"size": 3, "mode": "foo"}),
        (X, {"size": 3, "align_corners": True}), (X, {"size": 3, "mode": "linear"}),
        (X[0], {"size": 3, "mode": "bilinear"}), (X, {"size": (3, 3, 3)}),
        (X, {"scale_factor": (2.0, 2.0, 2.0)}), (X, {"size": 0}), (o(2, 3), {"size": 3}),
        (X, {"size": 3, "recompute_scale_factor": True}), (X, {"size": 3, "antialias": True}),
    ],
    ids=str,
)  # fmt: skip
def test_interpolate_errors(x, kwargs):
    same_error(
        lambda: interpolate.interpolate(to_jax(x), **kwargs), lambda: F.interpolate(x, **kwargs)
    )


def test_shuffles():
    x = randn(2, 8, 4, 6)
    compare(nn_image.pixel_shuffle, F.pixel_shuffle, [x], ONE, upscale_factor=2)
    compare(nn_image.pixel_unshuffle, F.pixel_unshuffle, [x[0]], ONE, downscale_factor=2)
    compare(lambda x: nn_image.channel_shuffle(x, 4), lambda x: F.channel_shuffle(x, 4), [x], ONE)


BLOCKS = [
    {"kernel_size": 2}, {"kernel_size": (3, 2), "stride": 2, "padding": 1},
    {"kernel_size": 2, "dilation": 2, "padding": (0, 1)},
]  # fmt: skip


@pytest.mark.parametrize("kwargs", BLOCKS, ids=str)
def test_unfold_and_fold(kwargs):
    for x in (X4, X4[0]):
        compare(nn_image.unfold, F.unfold, [x], ONE, **kwargs)
        columns = F.unfold(x, **kwargs)
        compare(nn_image.fold, F.fold, [columns], ONE, output_size=(6, 5), **kwargs)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("pixel_shuffle", (X, 3), {}), ("pixel_shuffle", (X, 0), {}),
        ("pixel_shuffle", (o(2, 2), 2), {}), ("pixel_unshuffle", (X, 4), {}),
        ("pixel_unshuffle", (X, 0), {}), ("pixel_unshuffle", (o(2, 2), 2), {}),
        ("pixel_unshuffle", (o(1, 6, 5), 2), {}), ("channel_shuffle", (X, 3), {}),
        ("channel_shuffle", (X, 0), {}), ("channel_shuffle", (o(2, 2), 2), {}),
        ("unfold", (o(2, 2), 2), {}), ("unfold", (X, 7), {}), ("unfold", (X, 0), {}),
        ("unfold", (X, (2, 2, 2)), {}), ("unfold", (X, 2), {"stride": 0}),
        ("unfold", (X, 2), {"dilation": 0}), ("unfold", (X, 2), {"padding": -1}),
        ("unfold", (X.long(), 2), {}), ("unfold", (X[:, :0], 2), {}),
        ("fold", (o(2, 15, 25), (6, 6), 2), {}), ("fold", (o(2, 16, 24), (6, 6), 2), {}),
        ("fold", (o(16), (6, 6), 2), {}), ("fold", (o(2, 16, 25), (6, 6), 0), {}),
        ("fold", (o(2, 16, 25), (6, 6, 6), 2), {}), ("fold", (o(2, 16, 25), (1, 1), 2), {}),
    ],
)  # fmt: skip
def test_image_errors(name, args, kwargs):
    same_error(
        lambda: getattr(nn_image, name)(*map(to_jax, args), **kwargs),
        lambda: getattr(F, name)(*args, **kwargs),
    )


A, B = randn(4, 3), randn(4, 3)
A[0] = 0


def test_cosine_similarity():
    body = distance.cosine_similarity
    compare(body, F.cosine_similarity, [A, B])
    compare(body, F.cosine_similarity, [A, B[1]], ONE, dim=-1)
    compare(body, F.cosine_similarity, [A, B], ONE, dim=0, eps=10.0)
    for args in [(A, B, 2), (A, B[:, :2]), (A.long(), B.long())]:
        same_error(lambda a=args: body(*map(to_jax, a)), lambda a=args: F.cosine_similarity(*a))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_pairwise_distance(p):
    body = distance.pairwise_distance
    compare(body, F.pairwise_distance, [A, B], ONE, p=p)
    compare(body, F.pairwise_distance, [A[1], B[1]], ONE, p=p, keepdim=True)
    same_error(lambda: body(to_jax(A), to_jax(B[:, :2])), lambda: F.pairwise_distance(A, B[:, :2]))
