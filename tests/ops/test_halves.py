"""float16 and bfloat16: what is added up is added up in float32, as PyTorch's kernels do."""

import numpy as np
import pytest
import torch

import leafax

HALVES = ["bfloat16", "float16"]


def bias_gradient(t, dtype, use):
    """The gradient that 8192 ones add up to, in each of 4 elements."""
    bias = t.zeros(4, dtype=getattr(t, dtype), requires_grad=True)
    use(t, bias, lambda *shape: t.ones(shape, dtype=getattr(t, dtype))).sum().backward()
    return bias.grad.tolist()


USES = {
    "conv2d": lambda t, b, ones: t.nn.functional.conv2d(ones(8, 2, 32, 32), ones(4, 2, 1, 1), b),
    "conv1d": lambda t, b, ones: t.nn.functional.conv1d(ones(8, 2, 1024), ones(4, 2, 1), b),
    "add": lambda t, b, ones: ones(8, 4, 32, 32) + b.view(1, 4, 1, 1),
    "mul": lambda t, b, ones: ones(8, 4, 32, 32) * b.view(1, 4, 1, 1),
    "linear": lambda t, b, ones: t.nn.functional.linear(ones(8192, 2), ones(4, 2), b),
    "expand": lambda t, b, ones: b.view(1, 4, 1).expand(8, 4, 1024),
}


@pytest.mark.parametrize("use", USES)
def test_gradients_of_what_was_repeated_are_summed_in_float32(use):
    found = bias_gradient(leafax, "bfloat16", USES[use])
    assert found == bias_gradient(torch, "bfloat16", USES[use]) == [8192.0] * 4


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["exp2", "sinc"])
def test_a_product_inside_is_not_rounded(name, dtype):
    x = np.linspace(0.05, 9, 200)
    theirs = getattr(torch, name)(torch.tensor(x).to(getattr(torch, dtype)))
    ours = getattr(leafax, name)(leafax.tensor(x).to(getattr(leafax, dtype)))
    eps = torch.finfo(getattr(torch, dtype)).eps
    np.testing.assert_allclose(ours.float().numpy(), theirs.float(), rtol=eps, atol=eps)


ROUNDED_ONCE = {
    "times a number": lambda t, x, y: x * 1.1,
    "times a tensor without dims": lambda t, x, y: x * t.tensor(1.1),
    "by a number": lambda t, x, y: x / 1.1,
    "a number by": lambda t, x, y: 1.1 / x,
    "plus a number": lambda t, x, y: x + 1.1 - 0.3,
    "add of a multiple": lambda t, x, y: x.add(y, alpha=1.1) + x.sub(y, alpha=0.7),
    "rsub": lambda t, x, y: t.rsub(x, y, alpha=1.1),
    "addcmul": lambda t, x, y: t.addcmul(x, y, y) + t.addcmul(x, y, y, value=1.1),
    "addcdiv": lambda t, x, y: t.addcdiv(x, y, y + 1, value=1.1),
    "lerp": lambda t, x, y: x.lerp(y, 0.3) + x.lerp(y, 0.7) + x.lerp(y, y / 10),
    "in place": lambda t, x, y: x.clone().mul_(1.1).div_(0.3).sub_(0.7),
    "cube": lambda t, x, y: (x / 4) ** 3,
    "hypot": lambda t, x, y: t.hypot(x, y),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y) + t.logaddexp2(x, y),
    "degrees": lambda t, x, y: t.rad2deg(x) + t.deg2rad(y),
    "smooth_l1_loss": lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, reduction="none"),
    "huber_loss": lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="none"),
    **{
        name: lambda t, x, y, name=name: getattr(t, name)(x / 16)
        for name in ("sigmoid", "asin", "acos", "asinh", "atanh", "expm1", "tanh", "exp", "erf")
    },
    "log10": lambda t, x, y: x.log10(),
    "acosh": lambda t, x, y: (x + 1).acosh(),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("what", ROUNDED_ONCE)
def test_rounded_once(what, dtype):
    """To the last bit, also where the next op reads it in the same program."""
    x, y = np.linspace(0.05, 9, 256), np.linspace(7, 0.3, 256)
    found = []
    for t in (leafax, torch):
        a, b = (t.tensor(v).to(getattr(t, dtype)) for v in (x, y))
        found.append(ROUNDED_ONCE[what](t, a, b).float().tolist())
    assert found[0] == found[1]


QUOTIENTS = {
    "mean": lambda t, x: x.view(-1, 60).mean(1),
    "sum": lambda t, x: x.view(-1, 60).sum(1),
    "nanmean": lambda t, x: x.view(-1, 60).nanmean(1),
    "var": lambda t, x: (x / 3).view(-1, 60).var(1),
    "trunc": lambda t, x: t.div(x, 41.0, rounding_mode="trunc"),
    "trunc, tenths": lambda t, x: t.div(x, 0.1, rounding_mode="trunc"),
    "floor": lambda t, x: x // 0.1,
    "round": lambda t, x: t.round(x / 8, decimals=3),
    "round, tens": lambda t, x: t.round(x, decimals=-1),
    "gradient of fmod": lambda t, x: slope_of_fmod(t, x),
}


def slope_of_fmod(t, x):
    y = t.tensor(41.0, dtype=x.dtype, requires_grad=True)
    (t.fmod(x, y) * (x == 41)).sum().backward()
    return y.grad


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("call", QUOTIENTS)
def test_quotients_by_what_is_known_are_no_products_with_reciprocals(call, dtype):
    found = []
    for t in (torch, leafax):  # so many that XLA divides them
        x = t.tensor(np.arange(1, 200).repeat(60)).to(getattr(t, dtype))
        found.append(QUOTIENTS[call](t, x).tolist())
    assert found[0] == found[1]
