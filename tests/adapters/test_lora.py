"""Low-rank adapters on linen and nnx models, against the arithmetic written out."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

import leafax as torch
from leafax.adapters import linen, lora
from leafax.adapters import nnx as nnx_models

IMAGES = np.random.default_rng(0).normal(size=(4, 6, 6, 2)).astype("float32")


class Net(nn.Module):
    """Convolution, attention, two dense layers and an einsum."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Conv(4, (3, 3), name="conv")(x)).reshape(x.shape[0], -1, 4)
        x = nn.MultiHeadDotProductAttention(2, name="attention")(x, x)
        x = nn.Einsum((4, 5), "...a,ab->...b", name="einsum")(x).mean(1)
        return nn.Dense(3, name="head")(nn.tanh(nn.Dense(8, name="dense")(x)))


class NnxNet(nnx.Module):
    """The same in nnx."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.conv = nnx.Conv(2, 4, (3, 3), rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs)
        self.einsum = nnx.Einsum("...a,ab->...b", (4, 5), (5,), rngs=rngs)
        self.dense = nnx.Linear(5, 8, rngs=rngs)
        self.head = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.relu(self.conv(x)).reshape(x.shape[0], -1, 4)
        x = self.einsum(self.attention(x)).mean(1)
        return self.head(nnx.tanh(self.dense(x)))


def model_of(kind: str) -> Any:
    if kind == "nnx":
        return nnx_models.Model(NnxNet())
    return linen.Model(Net(), Net().init(jax.random.key(0), IMAGES))


@pytest.fixture(params=["linen", "nnx"])
def model(request: Any) -> Any:
    return model_of(request.param)


PATTERNS = ["conv", "attention.**.kernel", "einsum.kernel", "dense"]
SHAPES = {
    "conv.kernel": (18, 4), "attention.query.kernel": (4, 4), "attention.key.kernel": (4, 4),
    "attention.value.kernel": (4, 4), "attention.out.kernel": (4, 4),
    "einsum.kernel": (4, 5), "dense.kernel": (5, 8),
}  # fmt: skip


def images() -> Any:
    return torch.from_numpy(IMAGES)


def step(model: Any, optimizer: Any) -> float:
    optimizer.zero_grad()
    loss = (model(images()) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.quick(1)
def test_it_starts_as_the_base_and_trains_the_factors_alone(model: Any) -> None:
    base = model(images()).detach()
    before = model.state_dict()
    torch.manual_seed(0)
    adapter = lora.add(model, PATTERNS, rank=2)
    shapes = {n: tuple(p.shape) for n, p in adapter.named_parameters()}
    assert shapes == {
        f"{n}.lora_{x}": (s[0], 2) if x == "a" else (2, s[1])
        for n, s in SHAPES.items()
        for x in "ab"
    }
    np.testing.assert_allclose(model(images()).detach(), base, atol=1e-6)
    optimizer = torch.optim.Adam([*adapter.parameters(), *model.parameters()], lr=0.1)
    losses = [step(model, optimizer) for _ in range(8)]
    assert losses[-1] < losses[0] / 2
    after = model.state_dict()
    assert all(after[n].tolist() == before[n].tolist() for n in before), "the base stays"
    assert len(optimizer.state) == len(shapes)
    assert all(p.grad is None for p in model.parameters())
    assert repr(adapter) == f"Lora(7 kernels, {sum(np.prod(s) for s in shapes.values()):,} numbers)"
    runs = [r for r in torch._runtime.cut.history if r.reason == "optimizer.step()"]
    assert [r.how for r in runs[-4:]] == ["cached"] * 4


def filled(model: Any, **options: Any) -> lora.Lora:
    """An adapter whose factors are not zero."""
    adapter = lora.add(model, PATTERNS, rank=2, alpha=3.0, **options)
    rng = np.random.default_rng(1)
    for p in adapter.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)).astype("float32") * 0.3)
    return adapter


@pytest.mark.quick(1)
def test_outputs_and_gradients_are_those_of_the_sum(model: Any) -> None:
    """`w + 1.5 a b` in each kernel, differentiated by JAX."""
    kernels = {n: model.get_parameter(n).jax() for n in SHAPES}
    adapter = filled(model)
    out = model(images())
    (out**2).sum().backward()
    module, rest = (
        (model._module, model.variables()) if isinstance(model, linen.Model)
        else nnx.split(model.to_flax())
    )  # fmt: skip

    def replaced(factors: Any) -> Any:
        def one(path: Any, leaf: Any) -> Any:
            keys = [str(getattr(k, "key", getattr(k, "name", k))) for k in path]
            name = ".".join(keys).removeprefix("params.").removesuffix(".value")
            if name not in kernels:
                return leaf
            a, b = factors[f"{name}.lora_a"], factors[f"{name}.lora_b"]
            return leaf + 1.5 * (a @ b).reshape(leaf.shape)

        return jax.tree_util.tree_map_with_path(one, rest)

    def loss(factors: Any) -> Any:
        tree = replaced(factors)
        y = (
            module.apply(tree, IMAGES) if isinstance(model, linen.Model)
            else nnx.merge(module, tree)(IMAGES)
        )  # fmt: skip
        return (y**2).sum(), y

    factors = {n: p.jax() for n, p in adapter.named_parameters()}
    gradients, wanted = jax.grad(loss, has_aux=True)(factors)
    np.testing.assert_allclose(out.detach(), wanted, rtol=1e-4, atol=1e-5)
    for name, p in adapter.named_parameters():
        np.testing.assert_allclose(p.grad, gradients[name], rtol=1e-3, atol=1e-4)


def test_merge_and_unmerge(model: Any) -> None:
    base = model.state_dict()
    adapter = filled(model)
    with_factors = model(images()).detach()
    adapter.merge()
    np.testing.assert_allclose(model(images()).detach(), with_factors, rtol=1e-4, atol=1e-5)
    assert not model(images()).requires_grad
    merged = model.state_dict()
    assert merged.keys() == base.keys()
    assert {n for n in base if merged[n].tolist() != base[n].tolist()} == set(SHAPES)
    with pytest.raises(RuntimeError, match="the adapters are merged already: `unm"):
        adapter.merge()
    adapter.unmerge()
    assert all(model.state_dict()[n].tolist() == base[n].tolist() for n in base)
    np.testing.assert_array_equal(model(images()).detach(), with_factors)
    with pytest.raises(RuntimeError, match="the adapters are not merged"):
        adapter.unmerge()
    adapter.remove()
    assert not np.allclose(model(images()).detach(), with_factors)


def test_the_adapter_alone_is_saved(model: Any) -> None:
    adapter = filled(model)
    out = model(images()).detach()
    saved = {name: t.numpy() for name, t in adapter.state_dict().items()}
    adapter.remove()
    again = lora.add(model, PATTERNS, rank=2, alpha=3.0)
    again.load_state_dict(saved)
    np.testing.assert_array_equal(model(images()).detach(), out)
    saved["head.kernel.lora_a"] = saved.pop("conv.kernel.lora_a")
    saved["dense.kernel.lora_b"] = saved["dense.kernel.lora_b"][:1]
    message = (
        'the adapter does not fit: "dense.kernel.lora_b" has shape [1, 8] where [2, 8] is needed; '
        'missing "conv.kernel.lora_a"; unexpected "head.kernel.lora_a"'
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        again.load_state_dict(saved)


def test_rank_and_alpha_by_pattern_and_a_head_that_trains_too(model: Any) -> None:
    adapter = lora.add(
        model, {"conv": {"rank": 3, "alpha": 3}, ("dense", "**.query"): {}}, rank=4, alpha=2.0
    )
    assert {n: (f.a.shape[1], f.scale) for n, f in adapter.factors.items()} == {
        "conv.kernel": (3, 1.0), "dense.kernel": (4, 0.5), "attention.query.kernel": (4, 0.5),
    }  # fmt: skip
    model.unfreeze("head")
    optimizer = torch.optim.SGD([*adapter.parameters(), *model.head.parameters()], lr=0.1)
    assert step(model, optimizer) > step(model, optimizer)
    assert sum(p.grad is not None for p in model.parameters()) == 2


def test_wrong_adapters_are_errors(model: Any) -> None:
    with pytest.raises(ValueError, match="dense.bias: no kernel among them, an adapter needs two"):
        lora.add(model, "dense.bias")
    with pytest.raises(ValueError, match="the rank of `dense.kernel` must be at least 1, got 0"):
        lora.add(model, "dense", rank=0)
    with pytest.raises(ValueError, match="pattern `dens` matches none"):
        lora.add(model, "dens")
    lora.add(model, "dense")
    with pytest.raises(ValueError, match="`dense.kernel` has an adapter already"):
        lora.add(model, "dense")


RNGS = nnx.Rngs(0)
WIDE = np.random.default_rng(0).normal(size=(2, 5, 7, 6)).astype("float32")
# A layer, its input, the number of its kernel's dimensions that it sums over.
LAYERS: dict[str, tuple[Any, Any, int]] = {
    "dense": (nn.Dense(64), WIDE, 1),
    "dense without a bias in bfloat16": (nn.Dense(9, use_bias=False, dtype=jnp.bfloat16), WIDE, 1),
    "several features": (nn.DenseGeneral((3, 4)), WIDE, 1),
    "several axes": (nn.DenseGeneral((3, 4), axis=(-2, -1)), WIDE, 2),
    "axes in the middle": (nn.DenseGeneral(5, axis=(1, 3)), WIDE, 2),
    "convolution": (nn.Conv(8, (3, 2)), WIDE, 3),
    "strides": (nn.Conv(8, (3, 3), strides=2, padding="VALID"), WIDE, 3),
    "dilation": (nn.Conv(8, (2, 2), kernel_dilation=2, padding=((1, 0), (2, 1))), WIDE, 3),
    "one dimension": (nn.Conv(8, (3,), padding="CAUSAL"), WIDE[0], 2),
    "einsum": (nn.Einsum((6, 3, 4), "...a,anh->...nh"), WIDE, 1),
    "einsum over two": (nn.Einsum((7, 6, 4), "btna,nah->bth"), WIDE, 2),
    "nnx linear": (nnx.Linear(6, 64, rngs=RNGS), WIDE, 1),
    "nnx several axes": (nnx.LinearGeneral((7, 6), (3, 4), axis=(-2, -1), rngs=RNGS), WIDE, 2),
    "nnx convolution": (nnx.Conv(6, 8, (3, 2), strides=2, rngs=RNGS), WIDE, 3),
    "nnx circular": (nnx.Conv(6, 8, (3, 3), padding="CIRCULAR", rngs=RNGS), WIDE, 3),
    "nnx einsum": (nnx.Einsum("bta,anh->btnh", (6, 3, 4), (3, 4), rngs=RNGS), WIDE[0], 1),
}  # fmt: skip
# These compute the sum.
SUMMED: dict[str, tuple[Any, Any, int]] = {
    "groups": (nn.Conv(8, (3, 3), feature_group_count=2), WIDE, 3),
    "transposed": (nn.ConvTranspose(8, (3, 3)), WIDE, 3),
    "batches of kernels": (nn.DenseGeneral(5, axis=-1, batch_dims=(0,)), WIDE, 2),
    "another split": (nn.DenseGeneral((3, 4)), WIDE, 2),
    "nnx groups": (nnx.Conv(6, 8, (3, 3), feature_group_count=2, rngs=RNGS), WIDE, 3),
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", [*LAYERS, *SUMMED])
def test_linear_layers_never_build_the_sum(name: str) -> None:
    """Neither the kernel's sum nor its gradient is in the program; the numbers are the sum's."""
    layer, x, inputs = (LAYERS | SUMMED)[name]
    model: Any = (
        nnx_models.Model(layer) if isinstance(layer, nnx.Module)
        else linen.Model(layer, layer.init(jax.random.key(0), x))
    )  # fmt: skip
    shape = tuple(model.get_parameter("kernel").shape)
    adapter = lora.add(model, "kernel", rank=2, inputs=inputs)
    rng = np.random.default_rng(1)
    for p in adapter.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)).astype("float32") * 0.3)
    out = model(torch.from_numpy(x)).float().detach()
    adapter.merge()
    np.testing.assert_allclose(model(torch.from_numpy(x)).float(), out, rtol=2e-2, atol=2e-1)
    if "bfloat16" not in name:
        np.testing.assert_allclose(model(torch.from_numpy(x)), out, rtol=1e-4, atol=1e-4)
    adapter.unmerge()

    pure, leaves = calls_of(model)
    n = len(leaves) - 2

    def loss(factors: Any) -> Any:
        return pure([*leaves[:n], *factors], None, (x,), {})[0].astype("float32").sum()

    text = str(jax.make_jaxpr(jax.grad(loss))(leaves[n:]))
    spelt = ",".join(map(str, shape))
    made = [line for line in text.splitlines() if re.match(rf"\s+\w+:\w+\[{spelt}\] = ", line)]
    assert bool([m for m in made if "convert" not in m]) is (name in SUMMED), made


def calls_of(model: Any) -> tuple[Any, list[Any]]:
    """The model's call with its adapters as a pure function, and the leaves that it takes."""
    if isinstance(model, linen.Model):
        plain, own = model._pure("__call__", True, False), model._leaves
    else:
        view = model._view()
        plain, own = model._pure(view, "__call__", True, None, frozenset()), view.leaves
    pure, leaves = lora.adapted(plain, own, own, model._adapted_by())
    return pure, [t.jax() for t in leaves]


class Stacked(nn.Module):
    """Three layers by `nn.scan`."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        class Layer(nn.Module):
            @nn.compact
            def __call__(self, x: Any, _: Any) -> Any:
                return nn.tanh(nn.Dense(6, name="dense")(x)), None

        layers = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return layers(name="layers")(x, None)[0]


@pytest.mark.exhaustive
def test_layers_of_a_scan_have_factors_of_their_own() -> None:
    x = WIDE[0, 0]
    model = linen.Model(Stacked(), Stacked().init(jax.random.key(0), x))
    adapter = lora.add(model, "**.kernel", rank=2, stacked=1)
    a, b = adapter.parameters()
    assert (a.shape, b.shape) == ((3, 6, 2), (3, 2, 6))
    assert "3 kernels" not in repr(adapter) and "72 numbers" in repr(adapter)
    base = model(torch.from_numpy(x)).detach()
    with torch.no_grad():
        b[1] = 0.3
    p, y = model.state_dict(), torch.from_numpy(x)
    for i in range(3):
        kernel = p["layers.dense.kernel"][i] + 2 * a[i] @ b[i]
        y = (y @ kernel + p["layers.dense.bias"][i]).tanh()
    out = model(torch.from_numpy(x))
    np.testing.assert_allclose(out.detach(), y.detach(), rtol=1e-4, atol=1e-5)
    assert not np.allclose(out.detach(), base)
    out.sum().backward()
    assert all((p.grad != 0).any().item() for p in (a, b))
    adapter.merge()
    np.testing.assert_allclose(model(torch.from_numpy(x)), out.detach(), rtol=1e-4, atol=1e-5)
    adapter.unmerge()
    assert model.state_dict()["layers.dense.kernel"].tolist() == p["layers.dense.kernel"].tolist()
    message = "`layers.dense.kernel` has 3 dimensions, so 2 of them cannot number layers: an adap"
    adapter.remove()
    with pytest.raises(ValueError, match=message):
        lora.add(model, "**.kernel", stacked=2)


def test_submodules_are_adapted_on_their_own_and_can_be_watched() -> None:
    model = model_of("nnx")
    filled(model)
    x = torch.ones(2, 5)
    adapted = model.dense(x).detach()
    with model.watch("dense") as seen:
        model(images()).sum().backward()
    assert seen["dense"].grad is not None
    model._adapted_by().clear()
    assert not np.allclose(model.dense(x).detach(), adapted)


@pytest.mark.exhaustive
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_adapters_of_their_own(model: Any, copied: Any) -> None:
    torch.manual_seed(0)  # adapters that are drawn large round by more than is allowed here
    adapter = lora.add(model, PATTERNS, rank=2)
    for p in adapter.parameters():
        p.data = torch.randn(*p.shape)
    x = images()
    before = model.eval()(x).detach()
    alone, (other, adapters) = copied(model), copied((model, adapter))
    assert torch.allclose(alone(x), before, atol=1e-5)
    assert torch.allclose(other(x), before, atol=1e-5)
    for p in adapters.parameters():
        p.data = torch.zeros_like(p)
    assert not torch.allclose(other(x), before)
    assert torch.allclose(model(x), before, atol=1e-5)
    adapter.merge()
    assert torch.allclose(model(x), before, atol=1e-5)
