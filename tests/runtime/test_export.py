"""`functional.lower`: the recorded program as a JAX function."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import leafax
from leafax.functional import lower


def plain(x: Any, w: Any) -> Any:
    return ((x @ w).exp() * 2).sum()


def detached(x: Any, w: Any) -> Any:
    y = x @ w
    return (y * y.detach()).sum() + y.detach().sum()


def under_no_grad(x: Any, w: Any) -> Any:
    with leafax.no_grad():
        scale = (x * x).sum()
    return (x @ w).sum() * scale


def written(x: Any, w: Any) -> Any:
    y = x * 1
    y[0] = 5.0
    z = y.view(-1)
    z[2:4].mul_(3)
    return (y @ w).pow(2).sum()


def overwritten_behind(x: Any, w: Any) -> Any:
    y = (x * 2).sum(1)
    with leafax.no_grad():
        y.mul_(10)
    return (y * y.detach()).sum() * w.sum()


@pytest.mark.quick(2)
@pytest.mark.parametrize("program", [plain, detached, under_no_grad, written, overwritten_behind])
def test_jax_grad_of_the_export_is_backward(program: Any) -> None:
    rng = np.random.default_rng(0)
    x = leafax.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    w = leafax.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    out = program(x, w)
    lowered = lower(out, (x, w))
    with jax.enable_x64(True):
        grads = jax.grad(lowered.fn, argnums=(0, 1))(*lowered.args)
    out.backward()
    assert float(lowered(*lowered.args)) == pytest.approx(out.item(), rel=1e-12)
    for g, t in zip(grads, (x, w), strict=True):
        expected = np.zeros(t.shape) if t.grad is None else t.grad.numpy()
        np.testing.assert_allclose(np.asarray(g), expected, rtol=1e-12)


def test_what_a_lowered_function_tells() -> None:
    x = leafax.ones(4, 4).requires_grad_()
    x = leafax.tensor(np.ones((4, 4), "f"), requires_grad=True)
    lowered = lower([x @ x, x.sum()], [x])
    assert "dot_general" in str(lowered.jaxpr)
    assert "stablehlo.dot_general" in lowered.hlo
    assert "HloModule" in lowered.optimized_hlo
    assert lowered.cost()["flops"] >= 128
    assert lowered.memory().output_size_in_bytes >= 64
    product, total = lowered(np.ones((4, 4), "f"))
    assert product.shape == (4, 4) and float(total) == 16.0


def test_gradients_can_be_lowered_too() -> None:
    x = leafax.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward()
    lowered = lower(x.grad, x)
    np.testing.assert_allclose(lowered(np.array([2.0, 3.0], "f")), [12.0, 27.0])


def test_messages() -> None:
    x = leafax.tensor([1.0], requires_grad=True)
    y = x * 2
    with pytest.raises(ValueError, match="input 1 is not an input of the recorded program"):
        lower(y, (x, leafax.tensor([1.0])))
    y.tolist()
    with pytest.raises(ValueError, match="an output has run already, so its program is gone"):
        lower(y, x)
    with pytest.raises(TypeError, match="must be leafax tensors, got int"):
        lower(3, x)
    with pytest.raises(ValueError, match="`outputs` is empty"):
        lower([], x)
