"""`optim.Optax.step(value=...)` against plain loops of optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import leafax

_TRANSFORMS: dict[str, Callable[[], Any]] = {
    "plateau": lambda: optax.chain(
        optax.sgd(0.05), optax.contrib.reduce_on_plateau(factor=0.5, patience=1, cooldown=1)
    ),
    "polyak": lambda: optax.polyak_sgd(max_learning_rate=0.3, f_min=0.1),
}
_X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def _plain(transform: Any, steps: int) -> list[Any]:
    params = {"0": jnp.ones(3), "1": jnp.zeros(())}
    state, seen = transform.init(params), []

    def loss_of(params: Any) -> Any:
        return jnp.abs(_X @ params["0"] + params["1"] - 0.5).mean()

    for _ in range(steps):
        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = transform.update(gradients, state, params, value=loss)
        params = optax.apply_updates(params, updates)
        seen.append([np.array(x) for x in (*params.values(), loss)])
    return seen


@pytest.mark.quick(2)
@pytest.mark.parametrize("how", ["pending", "known", "a number"])
@pytest.mark.parametrize("name", _TRANSFORMS)
def test_a_transformation_sees_the_loss(name: str, how: str) -> None:
    w, b = leafax.tensor(np.ones(3, np.float32)), leafax.tensor(np.float32(0))
    params, x = [w.requires_grad_(), b.requires_grad_()], leafax.tensor(_X)
    optimizer = leafax.optim.Optax(params, _TRANSFORMS[name]())
    leafax.explain(clear=True)
    for expected in _plain(_TRANSFORMS[name](), 8):
        optimizer.zero_grad()
        loss = (x @ w + b - 0.5).abs().mean()
        loss.backward()
        if how == "known":
            loss.item()
        optimizer.step(value=loss.item() if how == "a number" else loss)
        for ours, theirs in zip((w, b, loss), expected, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-5, atol=1e-6)
    if how == "pending":
        runs = [run for run in leafax.explain() if run.reason == "optimizer.step()"]
        assert len(runs) == 8 == len(leafax.explain())  # one program a step
        assert [run.how for run in runs[2:]] == ["cached"] * 6


def test_steps_without_a_value_and_with_other_transformations() -> None:
    w = leafax.ones(2, requires_grad=True)
    optimizer = leafax.optim.Optax([w], optax.sgd(0.5))
    w.grad = leafax.ones(2)
    optimizer.step(value=3.0)  # which sgd does not ask for
    assert w.tolist() == [0.5, 0.5]
    optimizer.step()
    assert w.tolist() == [0, 0]
    with pytest.raises(TypeError, match=r"Optax.step\(\): `value` must be a number or a tensor of"):
        optimizer.step(value=leafax.ones(2))
    watching = leafax.optim.Optax([w], optax.polyak_sgd())
    with pytest.raises(TypeError, match="value"):
        watching.step()
