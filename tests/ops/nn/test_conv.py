"""Convolutions against live PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same_error, to_jax

import leafax
from leafax.functional.ops.nn import conv as ours

G = torch.Generator().manual_seed(0)
o = torch.ones


def randn(*shape):
    return torch.randn(shape, generator=G)


CASES = [
    {}, {"stride": 2}, {"padding": 1}, {"dilation": 2}, {"padding": "same"},
    {"padding": "valid"}, {"groups": 2}, {"stride": 2, "padding": 1, "groups": 2},
]  # fmt: skip


@pytest.mark.quick(4)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("kwargs", CASES, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_conv(dims, kwargs):
    body, reference = getattr(ours, f"conv{dims}d"), getattr(F, f"conv{dims}d")
    x = randn(2, 4, *(6, 5, 5)[:dims])
    kernel = (2,) * dims if kwargs.get("padding") == "same" else (3, 2, 2)[:dims]
    w, b = randn(6, 4 // kwargs.get("groups", 1), *kernel), randn(6)
    compare(body, reference, [x, w, b], (torch.float64,), **kwargs)
    compare(body, reference, [x[0], w], (torch.float32,), grad=False, **kwargs)


TRANSPOSED = [
    {}, {"stride": 2}, {"stride": 2, "output_padding": 1}, {"padding": 1}, {"dilation": 2},
    {"groups": 2, "stride": 3, "padding": 1, "output_padding": 2},
]  # fmt: skip


@pytest.mark.quick(3)
@pytest.mark.parametrize("kwargs", TRANSPOSED, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_conv_transpose(dims, kwargs):
    name = f"conv_transpose{dims}d"
    x, w = randn(2, 4, *(4, 3, 3)[:dims]), randn(4, 3, *(3, 2, 2)[:dims])
    b = randn(3 * kwargs.get("groups", 1))
    compare(getattr(ours, name), getattr(F, name), [x, w, b], (torch.float64,), **kwargs)
    compare(getattr(ours, name), getattr(F, name), [x[0], w], grad=False, **kwargs)


def test_other_dtypes():
    x, w = randn(2, 4, 6, 6), randn(6, 4, 3, 3)
    compare(ours.conv2d, F.conv2d, [x, w], (torch.bfloat16,), grad=False, tolerance=0.15)
    compare(ours.conv2d, F.conv2d, [(x * 9).long(), (w * 9).long()], grad=False)
    grouped = [(x * 9).short(), (w[:, :2] * 9).short()]
    compare(ours.conv2d, F.conv2d, grouped, grad=False, stride=2, padding=1, groups=2)
    exact = F.conv_transpose2d((x * 9).long().double(), (w[:4] * 9).long().double(), stride=2)
    found = ours.conv_transpose2d(to_jax((x * 9).long()), to_jax((w[:4] * 9).long()), stride=2)
    assert found.tolist() == exact.tolist()  # which PyTorch refuses on CPUs
    compare(ours.conv2d, F.conv2d, [x[:0], w], grad=False)
    rest = {"stride": (1, 2), "padding": (1, 0), "dilation": (1, 1), "transposed": False}
    rest |= {"output_padding": (0, 0), "groups": 1}
    compare(ours.convolution, torch.convolution, [x, w, randn(6)], **rest)


X, W, T = o(2, 4, 6, 6), o(8, 4, 3, 3), o(4, 8, 3, 3)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("conv2d", (o(4, 6), W), {}), ("conv2d", (o(1, 2, 4, 6, 6), W), {}),
        ("conv2d", (o(2, 3, 6, 6), W), {}), ("conv2d", (o(3, 6, 6), W), {}),
        ("conv2d", (X, o(8, 2, 3, 3)), {"groups": 3}),
        ("conv2d", (X, o(7, 2, 3, 3)), {"groups": 2}),
        ("conv2d", (X, W), {"groups": 0}), ("conv2d", (X, o(1, 2, 3, 3)), {"groups": 2}),
        ("conv2d", (o(2, 4, 2, 2), W), {}), ("conv2d", (X, W), {"dilation": 3}),
        ("conv2d", (X, W, o(7)), {}), ("conv2d", (X, W, o(8, 1)), {}),
        ("conv2d", (X, W), {"stride": 0}), ("conv2d", (X, W), {"padding": -1}),
        ("conv2d", (X, W), {"dilation": 0}), ("conv2d", (X, W), {"stride": (1, 1, 1)}),
        ("conv2d", (X, W), {"padding": (1, 1, 1)}), ("conv2d", (X, W), {"dilation": (1, 1, 1)}),
        ("conv2d", (X, W), {"padding": "same", "stride": 2}),
        ("conv2d", (X, W), {"padding": "foo"}),
        ("conv2d", (X, W.double()), {}), ("conv2d", (X.long(), W), {}),
        ("conv2d", (X, W, o(8).double()), {}), ("conv2d", (X, o(8, 4, 3)), {}),
        ("conv2d", (X, o(8)), {}), ("conv2d", (X, o(8, 4, 3, 3, 3)), {}),
        ("conv2d", (o(2, 4, 0, 6), W), {"padding": 1}),
        ("conv2d", (o(2, 3, 6, 6), W), {"padding": "same"}),
        ("conv1d", (o(4), o(8, 4, 3)), {}), ("conv1d", (o(2, 3, 6), o(8, 4, 3)), {}),
        ("conv1d", (o(2, 4, 2), o(8, 4, 3)), {}), ("conv1d", (o(2, 4, 6), W), {}),
        ("conv1d", (o(2, 4, 6), o(8, 4, 3)), {"stride": (1, 1)}),
        ("conv3d", (X, o(8, 4, 3, 3, 3)), {}),
        ("conv_transpose2d", (o(2, 3, 6, 6), T), {}), ("conv_transpose2d", (X, T, o(7)), {}),
        ("conv_transpose2d", (X, T), {"output_padding": 1}),
        ("conv_transpose2d", (X, T), {"groups": 3}), ("conv_transpose2d", (o(4, 6), T), {}),
        ("conv_transpose2d", (X, T), {"output_padding": -1}),
        ("conv_transpose2d", (X, T), {"stride": (1, 1, 1)}),
        ("conv_transpose2d", (X, T, o(8)), {"groups": 2}),
        ("conv_transpose1d", (o(2, 4, 6), o(4, 8, 3)), {"output_padding": 1}),
        ("conv_transpose3d", (o(1, 4, 3, 3, 3), o(4, 8, 3, 3, 3)), {"output_padding": 1}),
    ],
)  # fmt: skip
def test_errors(name, args, kwargs):
    same_error(
        lambda: getattr(ours, name)(*map(to_jax, args), **kwargs),
        lambda: getattr(F, name)(*args, **kwargs),
    )


@pytest.mark.parametrize("case", ["weights", "weight alone", "same", "before shapes", "transposed"])
def test_a_model_of_another_dtype_than_its_data(case):
    def message(lib):
        x, f64 = lib.ones(2, 3, 8, 8), lib.float64
        weight = lib.ones(3, 3, 3, 3, dtype=f64)
        bias = lib.ones(3, dtype=f64)
        F = lib.nn.functional
        with pytest.raises(RuntimeError) as caught:
            if case == "weights":
                F.conv2d(x, weight, bias)
            elif case == "weight alone":
                F.conv2d(x, weight)
            elif case == "same":
                F.conv2d(x, weight.float(), bias, padding="same")
            elif case == "before shapes":
                F.conv2d(x[:, :1], weight, bias, stride=0)
            else:
                F.conv_transpose2d(x, weight, bias)
        return str(caught.value)

    assert message(leafax) == message(torch)
