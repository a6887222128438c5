"""PyTorch modules' state dicts in Flax models that compute the same."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import linen as nn
from flax import nnx

import leafax
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models
from leafax.adapters.torch import convert, load_into

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")


class TorchNet(torch.nn.Module):
    """Convolutions (one depthwise), norms, a dense layer; names unlike those of `Net`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(4)
        self.deep = torch.nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.bn2 = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.fc(self.bn2(self.deep(x)).mean((2, 3)))


class Net(nn.Module):
    """The same in Flax; in a dict's order `a_norm` comes first."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = nn.Conv(4, (3, 3), use_bias=False, name="stem")(x)
        x = nn.relu(nn.BatchNorm(not train, momentum=0.9, name="z_norm")(x))
        x = nn.Conv(4, (3, 3), feature_group_count=4, name="depthwise")(x)
        x = nn.BatchNorm(not train, momentum=0.9, name="a_norm")(x)
        return nn.Dense(5, name="head")(x.mean((1, 2)))


def trained() -> TorchNet:
    """A module whose statistics are not the initial ones."""
    torch.manual_seed(0)
    net = TorchNet()
    for _ in range(3):
        net(torch.tensor(IMAGES) * 3 + 1)
    return net.eval()


def variables() -> Any:
    return Net().init(jax.random.key(0), IMAGES.transpose(0, 2, 3, 1))


NAMES = {"conv1": "stem", "bn1": "z_norm", "deep": "depthwise", "bn2": "a_norm", "fc": "head"}


def test_a_convolutional_network_computes_the_same() -> None:
    net = trained()
    new, report = convert(net.state_dict(), variables(), names=NAMES)
    x = IMAGES.transpose(0, 2, 3, 1)
    wanted = net(torch.tensor(IMAGES)).detach().numpy()
    np.testing.assert_allclose(Net().apply(new, x), wanted, rtol=1e-4, atol=1e-5)
    assert len(report.rows) == 13 and not any(row.inferred for row in report.rows)
    assert "BatchNorm: Flax's `momentum` is 1 minus PyTorch's (0.9 for its 0.1" in str(report)
    assert re.search(r"conv1.weight +convolution +stem.kernel \[3, 3, 3, 4\]", report.table())
    # One more step in training moves the statistics as PyTorch's do (whose variance is unbiased).
    net.train()(torch.tensor(IMAGES))
    after: Any = Net().apply(new, x, train=True, mutable=["batch_stats"])[1]
    np.testing.assert_allclose(
        after["batch_stats"]["z_norm"]["mean"], net.bn1.running_mean, rtol=1e-4, atol=1e-6
    )


def test_names_are_inferred_by_shape_and_order_of_use() -> None:
    net = trained()
    model = linen.Model(Net(), variables()).eval()
    x = leafax.from_numpy(IMAGES.transpose(0, 2, 3, 1))
    model(x)
    report = load_into(model, net.state_dict())
    assert all(row.inferred for row in report.rows)
    assert ("bn1.weight", "z_norm.scale") in [(r.source, r.target) for r in report.rows]
    wanted = net(torch.tensor(IMAGES)).detach().numpy()
    np.testing.assert_allclose(model(x).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert "13 tensors taken, 13 of them matched by order and shape" in str(report)
    assert "(inferred)" in report.table()


def test_what_is_ambiguous_is_not_guessed() -> None:
    state = trained().state_dict()
    state["extra.weight"], state["extra.bias"] = state["fc.weight"], state["fc.bias"]
    with pytest.raises(ValueError, match="2 missing: head.bias, head.kernel\n4 unused: "):
        convert(state, variables())
    new, report = convert(state, variables(), names={"fc": "head"}, strict=False)
    assert report.unused == ["extra.weight", "extra.bias"] and not report.missing
    new, report = convert(state, variables(), names=lambda n: None if n == "extra" else NAMES[n],
                          strict=False)  # fmt: skip
    assert report.unused == ["extra.weight", "extra.bias"]


def test_wrong_names_and_shapes_are_errors() -> None:
    state = trained().state_dict()
    with pytest.raises(
        ValueError, match="`fc` is to become `haed`, which the model lacks; the nea"
    ):
        convert(state, variables(), names={"fc": "haed"})
    with pytest.raises(ValueError, match="`bn1` and `bn2` are both to become `a_norm`"):
        convert(state, variables(), names={"bn1": "a_norm", "bn2": "a_norm"})
    message = "`deep.weight` of shape [4, 1, 3, 3] does not fit `stem.kernel` of shape [3, 3, 3, 4]"
    with pytest.raises(ValueError, match=re.escape(message)):
        convert(state, variables(), names={"deep": "stem"})


class Attention(nn.Module):
    """PyTorch's `MultiheadAttention` on itself, and an embedding with a norm before it."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.LayerNorm(1e-5, name="norm")(nn.Embed(7, 8, name="words")(ids))
        return nn.MultiHeadDotProductAttention(2, name="attention")(x, x)


class TorchAttention(torch.nn.Module):
    """The same in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = torch.nn.Embedding(7, 8), torch.nn.LayerNorm(8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        torch.nn.init.normal_(self.attention.in_proj_bias)
        torch.nn.init.normal_(self.attention.out_proj.bias)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids))
        return self.attention(x, x, x)[0]


def test_attention_with_fused_projections() -> None:
    net = TorchAttention()
    ids = jnp.arange(6).reshape(2, 3)
    like = jax.eval_shape(Attention().init, jax.random.key(0), ids)
    new, report = convert(net.state_dict(), like)
    wanted = net(torch.tensor(np.asarray(ids))).detach().numpy()
    np.testing.assert_allclose(Attention().apply(new, ids), wanted, rtol=1e-4, atol=1e-5)
    how = {row.target: row.how for row in report.rows}
    assert how["attention.query.kernel"] == how["attention.out.kernel"] == "heads"
    assert how["words.embedding"] == how["norm.scale"] == "same"
    assert "LayerNorm: PyTorch's default `eps` is 1e-5" in str(report)


def test_nnx_models_and_stars() -> None:
    class Block(nnx.Module):
        def __init__(self) -> None:
            self.up = nnx.Linear(4, 4, rngs=nnx.Rngs(0))

    class Model(nnx.Module):
        def __init__(self) -> None:
            self.blocks = nnx.List([Block() for _ in range(3)])

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = block.up(x)
            return x

    net = torch.nn.Sequential(*[
        torch.nn.ModuleDict({"fc": torch.nn.Linear(4, 4)}) for _ in range(3)
    ])  # fmt: skip
    model = nnx_models.Model(Model())
    report = load_into(model, net.state_dict(), names={"*.fc": "blocks.*.up"})
    assert len(report.rows) == 6
    for i, block in enumerate(net):
        kernel = model.get_parameter(f"blocks.{i}.up.kernel").detach().numpy()
        np.testing.assert_array_equal(kernel, block["fc"].weight.detach().numpy().T)


def test_half_precision_and_copies() -> None:
    net = trained().bfloat16()
    like = jax.tree.map(lambda x: x.astype("bfloat16"), variables())
    new, _ = convert(net.state_dict(), like, names=NAMES)
    bias = new["params"]["head"]["bias"]
    wanted = net.fc.bias.detach().float().numpy().copy()
    with torch.no_grad():
        net.fc.bias.add_(1)
    assert bias.dtype == "bfloat16"
    np.testing.assert_array_equal(bias.astype("float32"), wanted)
