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
