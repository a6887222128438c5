"""Looking into loops: what submodules under `scan`, `remat` and `vmap` return, and gradients."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

import leafax
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
LAYERS = 4


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return x + nn.tanh(nn.Dense(3, name="dense")(x)), None


class Scanned(nn.Module):
    """Four blocks by `nn.scan`, computed again in backward if told so, and a head."""

    again: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        block = nn.remat(Block) if self.again else Block
        x, _ = nn.scan(
            block, variable_axes={"params": 0}, split_rngs={"params": True}, length=LAYERS
        )(name="layers")(x, None)
        return nn.Dense(2, name="head")(x)


class Layer(nnx.Module):
    def __init__(self, key: Any) -> None:
        self.dense = nnx.Linear(3, 3, rngs=nnx.Rngs(key))

    def __call__(self, x: Any) -> Any:
        return x + nnx.tanh(self.dense(x))


class NnxScanned(nnx.Module):
    """The same in nnx."""

    def __init__(self) -> None:
        self.layers = nnx.vmap(Layer)(jax.random.split(jax.random.key(0), LAYERS))
        self.head = nnx.Linear(3, 2, rngs=nnx.Rngs(1))

    def __call__(self, x: Any) -> Any:
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def run(layer: Any, x: Any) -> Any:
            return layer(x)

        return self.head(run(self.layers, x))


def model_of(kind: str) -> Any:
    if kind == "nnx":
        return nnx_models.Model(NnxScanned())
    module = Scanned(again=kind == "remat")
    return linen.Model(module, module.init(jax.random.key(0), X))


@pytest.fixture(params=["remat", "nnx"])
def model(request: Any) -> Any:
    return model_of(request.param)


def by_hand(model: Any) -> tuple[list[Any], Any]:
    """The layers' outputs, one by one, and the model's."""
    p = model.state_dict()
    x, outs = leafax.from_numpy(X), []
    for i in range(LAYERS):
        y = x @ p["layers.dense.kernel"][i] + p["layers.dense.bias"][i]
        y.requires_grad_() if not y.requires_grad else y.retain_grad()
        outs.append(y)
        x = x + y.tanh()
    return outs, x @ p["head.kernel"] + p["head.bias"]


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got.detach(), wanted.detach(), rtol=1e-4, atol=1e-5)


def gradients(model: Any) -> dict[str, Any]:
    return {name: p.grad for name, p in model.named_parameters()}


def test_values_and_gradients_come_stacked(model: Any) -> None:
    (model(leafax.from_numpy(X)) ** 2).sum().backward()
    plain = gradients(model)
    model.zero_grad()
    with model.watch("layers/dense", "head") as seen:
        (model(leafax.from_numpy(X)) ** 2).sum().backward()
    assert list(seen) == ["layers.dense", "head"]
    outs, out = by_hand(model)
    (out**2).sum().backward()
    close(seen["layers.dense"], leafax.stack(outs))
    close(seen["layers.dense"].grad, leafax.stack([y.grad for y in outs]))
    for name, grad in gradients(model).items():
        close(grad, plain[name])


def test_a_loss_of_what_was_seen_reaches_the_parameters(model: Any) -> None:
    with model.watch("layers.dense") as seen:
        out = model(leafax.from_numpy(X))
        ((out**2).sum() + (seen["layers.dense"] ** 3).sum()).backward()
    outs, out = by_hand(model)
    ((out**2).sum() + sum((y**3).sum() for y in outs)).backward()
    close(seen["layers.dense"].grad, leafax.stack([y.grad for y in outs]))
    first = model.get_parameter("layers.dense.bias").grad[0]
    close(first, outs[0].grad.sum(0))


def test_a_frozen_loop_has_gradients_of_its_values(model: Any) -> None:
    model.freeze("layers")
    with model.watch("layers.dense") as seen:
        (model(leafax.from_numpy(X)) ** 2).sum().backward()
    outs, out = by_hand(model)
    (out**2).sum().backward()
    close(seen["layers.dense"].grad, leafax.stack([y.grad for y in outs]))
    assert model.get_parameter("layers.dense.kernel").grad is None
    with model.watch("layers.dense", grad=False) as seen, leafax.no_grad():
        model(leafax.from_numpy(X))
    assert not seen["layers.dense"].requires_grad and seen["layers.dense"].grad is None


def test_a_watched_step_is_one_program_and_compiles_once(model: Any) -> None:
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        with model.watch("layers.dense") as seen:
            (model(leafax.from_numpy(X)) ** 2).sum().backward()
        norm = seen["layers.dense"].grad.norm()
        optimizer.step()
        norm.item()

    for _ in range(3):
        step()
    leafax.synchronize()
    leafax.explain(clear=True)  # it remembers so many runs and no more
    step()
    assert [r.how for r in leafax.explain().runs] == ["cached"]


def test_hooks_cannot_run_in_a_loop(model: Any) -> None:
    handle = model.register_forward_hook("layers.dense", lambda *values: None)
    message = r"`layers.dense` is called inside `\w+`, where no hook can run; `watch` shows its"
    with pytest.raises(ValueError, match=message):
        model(leafax.from_numpy(X))
    handle.remove()
    model(leafax.from_numpy(X))


class Again(nn.Module):
    """A block whose inside is computed again in backward."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.remat(Block)(name="block")(x, None)[0].sum()


def test_inside_a_part_that_is_computed_again() -> None:
    model = linen.Model(Again(), Again().init(jax.random.key(0), X))
    with model.watch("block.dense", "block") as seen:
        model(leafax.from_numpy(X)).backward()
    p = model.state_dict()
    y = (leafax.from_numpy(X) @ p["block.dense.kernel"] + p["block.dense.bias"]).requires_grad_()
    (leafax.from_numpy(X) + y.tanh()).sum().backward()
    close(seen["block.dense"], y)
    close(seen["block.dense"].grad, y.grad)
    assert seen["block"][0].grad.tolist() == np.ones_like(X).tolist()


class Heads(nn.Module):
    """Two heads at once, by `nn.vmap`."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        heads = nn.vmap(
            nn.Dense, in_axes=None, out_axes=0, axis_size=2, variable_axes={"params": 0},
            split_rngs={"params": True},
        )  # fmt: skip
        return heads(5, name="heads")(x)


def test_mapped_modules_show_all_of_a_batch() -> None:
    model = linen.Model(Heads(), Heads().init(jax.random.key(0), X))
    with model.watch("heads") as seen:
        out = model(leafax.from_numpy(X))
        (out**2).sum().backward()
    assert seen["heads"].shape == (2, 4, 5)
    close(seen["heads"], out)
    close(seen["heads"].grad, 2 * out)


class Chosen(nn.Module):
    """A part that runs only if the data say so."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        dense = nn.Dense(3, name="dense")
        return nn.cond(x.sum() > 0, lambda m, x: m(x), lambda m, x: m(x) * 2, dense, x)


def test_what_may_not_run_cannot_be_watched() -> None:
    model = linen.Model(Chosen(), Chosen().init(jax.random.key(0), X))
    message = "`dense` is called inside `cond`, which is differentiated as a whole: watch the subm"
    with model.watch("dense"), pytest.raises(ValueError, match=message):
        model(leafax.from_numpy(X))
