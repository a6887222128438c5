"""Freezing by class and by depth, groups by depth, and tied parameters."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

import leafax as torch
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


class Block(nn.Module):
    """A layer and a norm."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.LayerNorm(name="norm")(nn.Dense(3, name="dense")(x))


class Net(nn.Module):
    """Names in the dict's order say nothing: `final` is last, `zero` first; one block remats."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(3, name="zero")(x)
        for i in range(12):
            kind = nn.remat(Block) if i == 1 else Block
            x = kind(name=f"layer_{i}")(x)
        x = nn.LayerNorm(name="final")(x)
        return nn.Dense(2, name="a_head")(x)


class NnxBlock(nnx.Module):
    """A layer and a norm."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.dense, self.norm = nnx.Linear(3, 3, rngs=rngs), nnx.LayerNorm(3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.norm(self.dense(x))


class NnxNet(nnx.Module):
    """The same in nnx."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.zero = nnx.Linear(3, 3, rngs=rngs)
        self.layers = nnx.List([NnxBlock(rngs) for _ in range(12)])
        self.final = nnx.LayerNorm(3, rngs=rngs)
        self.a_head = nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.zero(x)
        for layer in self.layers:
            x = layer(x)
        return self.a_head(self.final(x))


VARIABLES = Net().init(jax.random.key(0), X)


def models() -> list[tuple[Any, str, Any]]:
    a, b = linen.Model(Net(), VARIABLES), nnx_models.Model(NnxNet())
    a(torch.from_numpy(X))
    b(torch.from_numpy(X))
    return [(a, "layer_*", nn.LayerNorm), (b, "layers.*", nnx.LayerNorm)]


@pytest.fixture(params=[0, 1], ids=["linen", "nnx"])
def case(request: Any) -> Any:
    return models()[request.param]


def trained(model: Any) -> set[str]:
    """Return the names of the parameters that train, without their last part."""
    return {n.rpartition(".")[0] for n, p in model.named_parameters() if p.requires_grad}


def test_all_but_the_last_blocks(case: Any) -> None:
    model, blocks, _ = case
    last = {f"{blocks[:-1]}{i}.{part}" for i in (10, 11) for part in ("dense", "norm")}
    assert trained(model.freeze(all_but_last=2, blocks=blocks)) == last | {"final", "a_head"}
    assert trained(model.freeze(all_but_last=0, blocks=blocks)) == {"final", "a_head"}
    assert trained(model.unfreeze(last=2, blocks=blocks)) == last | {"final", "a_head"}
    assert "zero" not in trained(model.unfreeze(last=12, blocks=blocks))
    assert "zero" in trained(model.unfreeze(last=0, blocks=blocks).unfreeze("zero"))
    assert trained(model.freeze("final", all_but_last=2, blocks=blocks)) == last | {"a_head"}
    with pytest.raises(ValueError, match="there are 12 blocks, so the last 13 of them do not exi"):
        model.freeze(all_but_last=13, blocks=blocks)
    with pytest.raises(ValueError, match="matches none of the .* the nearest are `"):
        model.freeze(all_but_last=1, blocks="layr_*")
    with pytest.raises(ValueError, match="`zero.kernel` names parameters, not the blocks that"):
        model.freeze(all_but_last=1, blocks="zero.kernel")


def test_top_level_parts_are_the_blocks_by_default() -> None:
    model = models()[0][0]
    assert trained(model.freeze(all_but_last=1)) == {"a_head"}
    assert trained(model.freeze().unfreeze(last=2)) == {"a_head", "final"}


def test_by_class(case: Any) -> None:
    model, _, norm = case
    model.freeze(norm)
    assert not any("norm" in name or "final" in name for name in trained(model))
    assert len(trained(model)) == 14
    model.unfreeze(norm, "zero")
    assert len(trained(model)) == 27
    groups = model.groups({norm: {"weight_decay": 0.0}})
    assert len(groups[0]["params"]) == 26
    with pytest.raises(ValueError, match="no submodule of class `Conv`; the nearest are `"):
        model.freeze(nn.Conv)
    with pytest.raises(ValueError, match="is in an earlier group already"):
        model.groups({(norm, "zero"): {}, norm: {}})


def test_classes_without_parameters_are_an_error() -> None:
    class Dropping(nnx.Module):
        def __init__(self) -> None:
            self.a, self.drop = nnx.Linear(3, 3, rngs=nnx.Rngs(0)), nnx.Dropout(0.1)

    with pytest.raises(ValueError, match="submodules of class `Dropout` have no parameters here"):
        nnx_models.Model(Dropping()).freeze(nnx.Dropout)


def test_a_part_knows_its_own_depth() -> None:
    model = models()[0][0]
    part = model.layer_3
    assert trained(part.freeze(all_but_last=1)) == {"norm"}
    assert trained(part.unfreeze().freeze(nn.LayerNorm)) == {"dense"}


def test_before_the_first_call_nobody_knows() -> None:
    class Other(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2)(x)

    model = linen.Model(Other(), Other().init(jax.random.key(0), X))
    with pytest.raises(RuntimeError, match="is known once it was called: call it on a batch first"):
        model.freeze(nn.Dense)
    with pytest.raises(RuntimeError, match="in what order `NnxNet` uses its submodules is known"):
        nnx_models.Model(NnxNet()).freeze(all_but_last=1)


def test_rates_fall_toward_the_input(case: Any) -> None:
    model, blocks, _ = case
    groups = model.layerwise_groups(1e-3, 0.5, blocks=blocks, weight_decay=0.1)
    assert [g["lr"] for g in groups] == [1e-3 * 0.5**i for i in range(14)]
    assert {n.split(".")[0] for n, _ in groups[0]["params"]} == {"final", "a_head"}
    assert {n.split(".")[0] for n, _ in groups[-1]["params"]} == {"zero"}
    assert len(groups[1]["params"]) == 4 and groups[1]["weight_decay"] == 0.1
    optimizer = torch.optim.AdamW(groups)
    model(torch.from_numpy(X)).sum().backward()
    optimizer.step()


class Tied(nn.Module):
    """An embedding, and a decoder that should have the same one."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.Embed(5, 3, name="embed")(ids)
        return nn.Embed(5, 3, name="decoder").attend(x)


def test_tied_parameters_appear_once_and_sum_their_gradients() -> None:
    ids = jnp.array([1, 2])
    variables = Tied().init(jax.random.key(0), ids)
    model = linen.Model(Tied(), variables, tied={"decoder.embedding": "embed.embedding"})
    assert [n for n, _ in model.named_parameters()] == ["embed.embedding"]
    table = model.get_parameter("embed.embedding")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(table: Any) -> Any:
        params = {"embed": {"embedding": table}, "decoder": {"embedding": table}}
        return (Tied().apply({"params": params}, ids) ** 2).sum()

    want: Any = variables["params"]["embed"]["embedding"]  # type: ignore[index]
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.tensor([1, 2])) ** 2).sum().backward()
        gradient = jax.grad(loss)(want)
        np.testing.assert_allclose(table.grad.numpy(), gradient, rtol=1e-5, atol=1e-6)
        optimizer.step()
        want = want - 0.1 * gradient
    out = model.variables()["params"]
    np.testing.assert_allclose(out["decoder"]["embedding"], want, rtol=1e-5)
    np.testing.assert_array_equal(out["decoder"]["embedding"], out["embed"]["embedding"])
    assert model.mask() == {"decoder": {"embedding": True}, "embed": {"embedding": True}}


def test_ties_that_cannot_be_are_errors() -> None:
    with pytest.raises(ValueError, match="no parameter `zero.kernl` to tie; the nearest are `zer"):
        linen.Model(Net(), VARIABLES, tied={"zero.kernl": "zero.bias"})
    message = "`zero.kernel` has shape [3, 3], `zero.bias` [3]: they cannot be one parameter"
    with pytest.raises(ValueError, match=re.escape(message)):
        linen.Model(Net(), VARIABLES, tied={"zero.kernel": "zero.bias"})


def test_a_type_that_selects_nothing_is_named() -> None:
    with pytest.raises(TypeError, match="`int` selects no parameters here: give globs"):
        models()[0][0].freeze(3)
