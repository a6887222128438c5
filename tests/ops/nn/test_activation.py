"""Activations and softmax against live PyTorch."""

from types import SimpleNamespace

import jax
import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same_error, to_jax

from leafax.functional.ops.nn import activation, shrinkage, softmax

ours = SimpleNamespace(**{**vars(shrinkage), **vars(activation)})

# Kinks of every function here, their neighbours, and large values.
X = torch.tensor(
    [[0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5], [6.0, -6.0, 0.2, -0.7, 25.0, -30.0, 2e2, -2e2]]
)
ALL = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

CASES = [
    ("relu", {}), ("relu6", {}), ("hardtanh", {}), ("hardtanh", {"min_val": -0.5, "max_val": 3.0}),
    ("leaky_relu", {}), ("leaky_relu", {"negative_slope": 0.3}), ("elu", {}),
    ("elu", {"alpha": 0.7}), ("selu", {}), ("celu", {}), ("celu", {"alpha": 1.7}), ("gelu", {}),
    ("gelu", {"approximate": "tanh"}), ("silu", {}), ("mish", {}), ("softplus", {}),
    ("softplus", {"beta": 2.0, "threshold": 1.0}), ("softsign", {}), ("hardsigmoid", {}),
    ("hardswish", {}), ("hardshrink", {}), ("hardshrink", {"lambd": 0.2}), ("softshrink", {}),
    ("tanhshrink", {}), ("threshold", {"threshold": 0.2, "value": -7.0}), ("logsigmoid", {}),
    ("glu", {}), ("glu", {"dim": 0}),
]  # fmt: skip


@pytest.mark.quick(5)
@pytest.mark.quick(5)
@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=str)
def test_activation(name, kwargs):
    # PyTorch's backward takes 1 / alpha and 1 / 6 in float32.
    limit = 1e-6 if name in ("celu", "hardsigmoid") else 1e-8
    compare(getattr(ours, name), getattr(F, name), [X], ALL, grad_tolerance=limit, **kwargs)


@pytest.mark.parametrize("name", ["relu", "hardtanh", "leaky_relu", "softshrink", "threshold"])
def test_nan_passes(name):
    args = (0.1, 2.0) if name == "threshold" else ()
    with jax.enable_x64(True):
        y = getattr(ours, name)(to_jax(torch.tensor([float("nan")])), *args)
    assert bool((y != y).all())


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "hardtanh", "threshold", "softsign", "tanhshrink"]
)
def test_integers(name):
    kwargs = {"threshold": 1, "value": 9} if name == "threshold" else {}
    x = torch.tensor([[-3, 0, 1, 9]])
    compare(getattr(ours, name), getattr(F, name), [x], grad=False, tolerance=1e-6, **kwargs)


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
def test_dtype_errors(name, dtype):
    x = torch.ones(2, 4).to(dtype)
    args = (0.1, 2.0) if name == "threshold" else ()
    body, reference = getattr(ours, name), getattr(F, name)
    try:
        reference(x, *args)
    except Exception:
        same_error(lambda: body(to_jax(x), *args), lambda: reference(x, *args))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("celu", (0.0,)), ("gelu", ("foo",)), ("softshrink", (-0.5,)), ("hardtanh", (2, 1)),
        ("glu", (2,)), ("glu", (1,)),
    ],
)  # fmt: skip
def test_argument_errors(name, args):
    x = torch.ones(2, 3)
    call = getattr(F, name)
    if name == "gelu":
        same_error(lambda: ours.gelu(to_jax(x), *args), lambda: F.gelu(x, approximate=args[0]))
    else:
        same_error(lambda: getattr(ours, name)(to_jax(x), *args), lambda: call(x, *args))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3), (3,)])
@pytest.mark.parametrize("weights", [1, 3])
def test_prelu(shape, weights):
    weight = torch.linspace(0.1, 0.5, weights)
    x = torch.linspace(-2, 2, 24)[: torch.Size(shape).numel()].reshape(shape)
    if len(shape) == 1 and weights == 3:
        same_error(lambda: ours.prelu(to_jax(x), to_jax(weight)), lambda: F.prelu(x, weight))
        return
    compare(ours.prelu, F.prelu, [x, weight])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(name, dim):
    compare(getattr(softmax, name), getattr(torch, name), [X], ALL, dim=dim)
    compare(getattr(softmax, name), getattr(torch, name), [torch.tensor(2.5)], dim=-1)
    compare(getattr(softmax, name), getattr(torch, name), [torch.ones(0, 2)], dim=dim)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_errors(name):
    body, reference = getattr(softmax, name), getattr(torch, name)
    for x, dim in [(X, 2), (X.long(), 1), (X.long(), 0), (torch.tensor(1.0), 1)]:
        same_error(lambda x=x, d=dim: body(to_jax(x), d), lambda x=x, d=dim: reference(x, d))
