"""einops on tensors of leafax, against einops on tensors of PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import einops
import numpy as np
import pytest
import torch
from einops.layers import torch as torch_layers

import leafax
from leafax.adapters import einops as layers

_CALLS: dict[str, Callable[..., Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "b c (h k) -> (b h) k c", k=2),
    "of a list": lambda x: einops.rearrange([x, x * 2], "n b c h -> c (n b h)"),
    "ellipsis": lambda x: einops.rearrange(x, "b ... -> ... b"),
    "new axes": lambda x: einops.rearrange(x, "b c h -> b 1 c h 1"),
    "repeat": lambda x: einops.repeat(x, "b c h -> b (h 3) k c", k=2),
    "sum": lambda x: einops.reduce(x, "b c h -> b", "sum"),
    "mean": lambda x: einops.reduce(x, "b c (h k) -> b h k", "mean", k=2),
    "max": lambda x: einops.reduce(x, "b c (h k) -> b c h", "max", k=2),
    "min": lambda x: einops.reduce(x, "b c h -> b 1 h", "min"),
    "prod": lambda x: einops.reduce(x, "b c h -> c", "prod"),
    "any": lambda x: einops.reduce(x > 0.5, "b c h -> b c", "any"),
    "function": lambda x: einops.reduce(x, "b c h -> b h", lambda y, axes: y.sum(tuple(axes)) * 2),
    "einsum": lambda x: einops.einsum(x, x * 2, "b c h, d c k -> b d h k"),
    "pack": lambda x: einops.pack([x, x[:, 0]], "b *")[0],
    "unpack": lambda x: einops.unpack(x.reshape(2, 12), [(3,), (3, 3)], "b *")[1],
    "rearrange layer": lambda x: _layer(x, "Rearrange", "b c (h k) -> b h (c k)", k=2),
    "reduce layer": lambda x: _layer(x, "Reduce", "b c h -> b c", "max"),
}


def _layer(x: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    home = torch_layers if isinstance(x, torch.Tensor) else layers
    return getattr(home, name)(*args, **kwargs)(x)


def _run(lib: Any, fn: Any, values: np.ndarray) -> Any:
    x = lib.tensor(values, requires_grad=True)
    y = fn(x * 1)
    if not y.requires_grad:
        return y.numpy(), None, y.stride()
    (y * y.cos()).sum().backward()
    return y.detach().numpy(), x.grad.numpy(), y.stride()


@pytest.mark.parametrize("name", _CALLS)
def test_values_and_gradients(name: str) -> None:
    values = np.random.default_rng(0).random((2, 3, 4))
    ours, expected = (_run(lib, _CALLS[name], values) for lib in (leafax, torch))
    np.testing.assert_allclose(ours[0], expected[0], rtol=1e-12)
    if expected[1] is not None:
        np.testing.assert_allclose(ours[1], expected[1], rtol=1e-12)


def test_a_step_with_einops_is_one_program() -> None:
    x = leafax.ones(2, 3, 4, requires_grad=True)
    y = einops.rearrange(x, "b c h -> b h c")
    y = einops.repeat(einops.reduce(y, "b h c -> b c", "mean"), "b c -> b c 5")
    einops.einsum(y, y, "b c k, b c k -> b").sum().backward()
    assert x.grad._array is None  # nothing has run so far
    assert einops.parse_shape(x, "b _ h") == {"b": 2, "h": 4}
    assert einops.asnumpy(x).shape == (2, 3, 4)


def test_errors_are_einops() -> None:
    with pytest.raises(einops.EinopsError, match="can't divide axis of length 4 in chunks of 3"):
        einops.rearrange(leafax.ones(4), "(a b) -> a b", b=3)


@pytest.mark.parametrize("bias", [None, "o"])
def test_a_mixing_layer(bias: str | None) -> None:
    def made(home: Any) -> Any:
        return home.EinMix("b c h -> b h o", "c o", bias_shape=bias, c=3, o=5)

    ours, expected = made(layers), made(torch_layers)
    assert {n: tuple(p.shape) for n, p in ours.named_parameters()} == {
        n: tuple(p.shape) for n, p in expected.named_parameters()
    }
    ours.load_state_dict({n: leafax.tensor(p.numpy()) for n, p in expected.state_dict().items()})
    x = np.random.default_rng(1).random((2, 3, 4)).astype(np.float32)
    with torch.no_grad():
        there = expected(torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours(leafax.tensor(x)).detach().numpy(), there, rtol=1e-5)
    assert repr(ours) == repr(expected)


_ORDERS = {
    "leafax first": "import leafax, sys; assert 'einops' not in sys.modules; import einops",
    "einops first": "import einops, leafax",
    "einops in use": "import einops, numpy; einops.rearrange(numpy.ones(2), 'a -> a 1')\n"
    "import leafax",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", _ORDERS)
def test_either_may_be_imported_first(order: str) -> None:
    lines = [_ORDERS[order], "print(einops.rearrange(leafax.ones(2, 3), 'a b -> b a').shape)"]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert run.stdout == "torch.Size([3, 2])\n", run.stderr
