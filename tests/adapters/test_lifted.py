"""Collections with rules of their own, lifted modules, lazy parameters, half precision."""

from __future__ import annotations

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


class Own(nn.Module):
    """A trainable collection, one that counts, and one that must not change."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        scale = self.variable("scales", "s", jnp.ones, (3,))
        calls = self.variable("counts", "n", jnp.zeros, ())
        table = self.variable("tables", "t", jnp.ones, (3,))
        if not self.is_initializing():
            calls.value = calls.value + 1
            if self.is_mutable_collection("tables"):
                table.value = table.value + 1
        return nn.Dense(2, name="head")(x * scale.value * table.value)


def test_each_collection_has_its_rule() -> None:
    variables = Own().init(jax.random.key(0), X)
    model = linen.Model(Own(), variables, rules={"scales": "trainable", "tables": "frozen"})
    assert [n for n, _ in model.named_parameters()] == ["head.bias", "head.kernel", "s"]
    assert [n for n, _ in model.named_buffers()] == ["n", "t"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.from_numpy(X)) ** 2).sum().backward()
        optimizer.step()
    assert model.get_buffer("n").item() == 3.0 and model.get_buffer("t").tolist() == [1.0] * 3
    assert model.get_parameter("s").tolist() != [1.0] * 3
    assert model._order() == ["s", "head.kernel", "head.bias"]
    model.freeze("s")
    assert set(model.variables()) == set(variables)
    with pytest.raises(ValueError, match="no collection `scale` to have a rule; there are \\['co"):
        linen.Model(Own(), variables, rules={"scale": "frozen"})
    with pytest.raises(ValueError, match="the rule of `scales` must be one of .*, got 'froze'"):
        linen.Model(Own(), variables, rules={"scales": "froze"})


class Scale(nnx.Variable[Any]):
    """A factor that trains."""


class Table(nnx.Variable[Any]):
    """Constants."""


class Count(nnx.Variable[Any]):
    """Calls."""


class NnxOwn(nnx.Module):
    """Variables of three classes of its own."""

    def __init__(self) -> None:
        self.s, self.t = Scale(jnp.ones(3)), Table(jnp.ones(3))
        self.n, self.head = Count(jnp.zeros(())), nnx.Linear(3, 2, rngs=nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        self.n[...] = self.n[...] + 1
        self.t[...] = self.t[...] + 1
        return self.head(x * self.s[...] * self.t[...])


def test_each_class_of_nnx_variables_has_its_rule() -> None:
    rules: Any = {Scale: "trainable", Table: "frozen"}
    model = nnx_models.Model(NnxOwn(), rules=rules)
    assert [n for n, _ in model.named_parameters()] == ["head.bias", "head.kernel", "s"]
    assert [n for n, _ in model.named_buffers()] == ["n", "t"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.from_numpy(X)) ** 2).sum().backward()
        optimizer.step()
    assert model.get_buffer("n").item() == 3.0 and model.get_buffer("t").tolist() == [1.0] * 3
    assert model.get_parameter("s").tolist() != [1.0] * 3
    mask = model.freeze("head").mask()
    assert (mask.s.get_raw_value(), mask.head.bias.get_raw_value()) == (
        True,
        False,
    ) and "n" not in mask
    only = nnx_models.Model(NnxOwn(), rules={nnx.Param: "frozen", Scale: "trainable"})
    assert [n for n, _ in only.named_parameters()] == ["s"]
    some: list[tuple[Any, type[Exception], str]] = [
        ({Scale: "froze"}, ValueError, "the rule of `Scale` must be one of .*, got 'froze'"),
        ({nnx.Cache: "buffer"}, ValueError, "no `Cache` to have a rule; there are \\['Count', 'P"),
        ({"s": "buffer"}, TypeError, "rules are for classes of nnx variables, got 's'"),
    ]
    for wrong, error, message in some:
        with pytest.raises(error, match=message):
            nnx_models.Model(NnxOwn(), rules=wrong)


class Block(nn.Module):
    """A residual layer with dropout, as `nn.scan` wants it."""

    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        y = nn.Dropout(0.2, deterministic=not self.has_rng("dropout"))(nn.Dense(3, name="d")(x))
        return x + nn.tanh(y), None


class Lifted(nn.Module):
    """Layers under scan with remat, and heads under vmap."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        scanned = nn.scan(
            nn.remat(Block), variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True}, length=4,
        )  # fmt: skip
        x, _ = scanned(name="layers")(x, None)
        heads = nn.vmap(
            nn.Dense, in_axes=None, out_axes=0, axis_size=2, variable_axes={"params": 0},
            split_rngs={"params": True},
        )  # fmt: skip
        return heads(2, name="heads")(x)


@pytest.mark.exhaustive
def test_lifted_linen_modules() -> None:
    variables = Lifted().init(jax.random.key(0), X)
    model = linen.Model(Lifted(), variables, rngs=["dropout"])
    assert dict(model.named_parameters())["layers.d.kernel"].shape == (4, 3, 3)
    model.freeze("heads")
    model.eval()
    (model(torch.from_numpy(X)) ** 2).sum().backward()
    wanted: Any = jax.grad(lambda v: (Lifted().apply(v, X) ** 2).sum())(variables)
    np.testing.assert_allclose(
        model.get_parameter("layers.d.kernel").grad, wanted["params"]["layers"]["d"]["kernel"],
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    assert model.get_parameter("heads.kernel").grad is None
    model(torch.from_numpy(X))
    assert model._order()[0] == "layers.d.kernel" and model._order()[-1].startswith("heads")
    model.train()
    outs = [model(torch.from_numpy(X)).tolist() for _ in range(2)]
    assert outs[0] != outs[1], "dropout inside scan draws from leafax's generator"


def test_nnx_transforms_inside_a_model() -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            @nnx.vmap
            def make(key: Any) -> nnx.Linear:
                return nnx.Linear(3, 3, rngs=nnx.Rngs(key))

            self.layers = make(jax.random.split(jax.random.key(0), 4))

        def __call__(self, x: Any) -> Any:
            @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
            @nnx.remat
            def run(layer: Any, x: Any) -> Any:
                return nnx.tanh(layer(x))

            return run(self.layers, x)

    module = Net()
    model = nnx_models.Model(module)
    (model(torch.from_numpy(X)) ** 2).sum().backward()
    wanted: Any = nnx.grad(lambda m: (m(X) ** 2).sum())(module)
    np.testing.assert_allclose(
        model.get_parameter("layers.kernel").grad, wanted.layers.kernel[...], rtol=1e-4, atol=1e-5
    )


class Part(nn.Module):
    """Layers that a compact method makes, and a second method."""

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = nn.BatchNorm(use_running_average=not train, name="norm")(nn.Dense(5, name="dense")(x))
        return nn.Dropout(0.5, deterministic=not train)(x)

    @nn.compact
    def twice(self, x: Any, train: bool) -> Any:
        return 2 * self(x, train)


class Whole(nn.Module):
    """Parts that a compact method makes."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        return nn.Dense(2, name="head")(Part(name="part")(x, train))


def test_submodules_of_compact_methods_are_called_on_their_own() -> None:
    x = torch.from_numpy(X)
    model = linen.Model.from_batch(Whole(), x)
    message = "`part` is made inside a compact `__call__`, so what it is is known once the model"
    with pytest.raises(AttributeError, match=message):
        model.part(x)
    model(x)
    hidden = model.part(x)
    mean = model.get_buffer("part.norm.mean").tolist()
    assert model.part(x).tolist() != hidden.tolist(), "dropout draws"
    assert model.get_buffer("part.norm.mean").tolist() != mean
    hidden.sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is not None] == [
        "part.dense.bias", "part.dense.kernel", "part.norm.bias", "part.norm.scale",
    ]  # fmt: skip
    model.eval()
    np.testing.assert_allclose(model.head(model.part(x)).detach(), model(x).detach(), rtol=1e-5)
    np.testing.assert_allclose(model.part.twice(x).detach(), 2 * model.part(x).detach(), rtol=1e-5)
    wanted = x @ model.get_parameter("part.dense.kernel") + model.get_parameter("part.dense.bias")
    np.testing.assert_allclose(model.part.dense(x).detach(), wanted.detach(), rtol=1e-4, atol=1e-5)
    with model.watch("part.dense") as seen:
        model.part(x).sum().backward()
    assert seen["part.dense"].grad is not None
    with pytest.raises(AttributeError, match="`part` has no part or method `thrice`"):
        model.part.thrice(x)


def test_parameters_are_made_for_a_first_batch_and_follow_the_seed() -> None:
    def made(seed: int) -> Any:
        torch.manual_seed(seed)
        return linen.Model.from_batch(nn.Dense(2), torch.from_numpy(X))

    kernels = [made(seed).get_parameter("kernel").tolist() for seed in (1, 1, 2)]
    assert kernels[0] == kernels[1] != kernels[2]
    assert made(0)(torch.from_numpy(X)).shape == (4, 2)


def test_several_calls_before_one_backward() -> None:
    model = linen.Model(nn.Dense(2), nn.Dense(2).init(jax.random.key(0), X))
    a, b = torch.from_numpy(X), torch.from_numpy(2 * X)
    (model(a).sum() + (model(b) ** 2).sum()).backward()
    both = model.get_parameter("kernel").grad.tolist()
    model.zero_grad()
    model(a).sum().backward()
    (model(b) ** 2).sum().backward()
    np.testing.assert_allclose(model.get_parameter("kernel").grad, both, rtol=1e-5)


def test_bfloat16_compute_with_float32_parameters() -> None:
    module = nn.Dense(2, dtype=jnp.bfloat16)
    variables: Any = module.init(jax.random.key(0), X)
    model = linen.Model(module, variables)
    out = model(torch.from_numpy(X))
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    kernel = model.get_parameter("kernel")
    assert kernel.dtype == kernel.grad.dtype == torch.float32
    wanted = jax.grad(lambda v: module.apply(v, X).astype("float32").sum())(variables)
    np.testing.assert_allclose(kernel.grad, wanted["params"]["kernel"], rtol=1e-2)


class Two(nnx.Module):
    """Two layers, one with a dtype of its own."""

    def __init__(self) -> None:
        self.a = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
        self.b = nnx.Linear(4, 2, dtype=jnp.float32, rngs=nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        return self.b(nnx.tanh(self.a(x)))


class LinenTwo(nn.Module):
    """The same in linen."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(2, dtype=jnp.float32, name="b")(nn.tanh(nn.Dense(4, name="a")(x)))


@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_a_model_computes_in_another_dtype(kind: str) -> None:
    model: Any = (
        nnx_models.Model(Two()) if kind == "nnx"
        else linen.Model(LinenTwo(), LinenTwo().init(jax.random.key(0), X))
    )  # fmt: skip
    plain = model(torch.from_numpy(X))
    with model.compute_in(torch.bfloat16).watch("a", "b") as seen:
        out = model(torch.from_numpy(X))
        out.sum().backward()
    assert seen["a"].dtype == torch.bfloat16 and seen["b"].dtype == torch.float32
    np.testing.assert_allclose(out.detach(), plain.detach(), atol=0.05)
    assert out.tolist() != plain.tolist()
    assert all(p.grad.dtype == p.dtype == torch.float32 for p in model.parameters())
    assert model.compute_in(None)(torch.from_numpy(X)).tolist() == plain.tolist()
    with pytest.raises(TypeError, match="a model computes in a floating point dtype, got torch.i"):
        model.compute_in(torch.int32)
