"""An nn.Module inside of Flax, a Flax model inside of an nn.Module, and their numbers both ways."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as flax_nn
from flax import nnx

import leafax
from leafax import nn
from leafax.adapters import linen, lora, weights
from leafax.adapters import nnx as nnx_models
from leafax.adapters.freezing import freeze, unfreeze, watch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4)).astype("float32")
Y = RNG.normal(size=(6, 2)).astype("float32")


def net() -> Any:
    leafax.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 2)
    )


def inside(module: Any) -> tuple[Any, Any]:
    made = linen.from_module(module)
    return made, made.init(jax.random.key(0), X)


# ---------------------------------------------------------------- a module inside of Flax


def test_a_module_is_a_linen_module_whose_variables_are_its_tensors() -> None:
    module = net().eval()
    made, variables = inside(module)
    own = {name: t.numpy() for name, t in module.state_dict().items()}
    held = {"0": ("weight", "bias"), "1": ("weight", "bias"), "4": ("weight", "bias")}
    assert {k: tuple(sorted(v)) for k, v in variables["params"].items()} == {
        k: tuple(sorted(v)) for k, v in held.items()
    }
    for path, names in held.items():
        for name in names:
            np.testing.assert_array_equal(variables["params"][path][name], own[f"{path}.{name}"])
    assert sorted(variables["batch_stats"]["1"]) == [
        "num_batches_tracked", "running_mean", "running_var",
    ]  # fmt: skip
    want = module(leafax.tensor(X))
    np.testing.assert_allclose(jax.jit(made.apply)(variables, X), want.detach(), rtol=1e-6)

    def loss(params: Any) -> Any:
        return ((made.apply({**variables, "params": params}, X) - Y) ** 2).mean()

    got = jax.jit(jax.grad(loss))(variables["params"])
    ((want - leafax.tensor(Y)) ** 2).mean().backward()
    for name, p in module.named_parameters():
        path, _, leaf = name.rpartition(".")
        np.testing.assert_allclose(got[path][leaf], p.grad, rtol=1e-5, atol=1e-7)


def test_its_statistics_move_and_its_dropout_draws_from_flaxs_keys() -> None:
    module = net().eval()
    made, variables = inside(module)

    @jax.jit
    def run(key: Any) -> Any:
        streams = {"dropout": key}
        return made.apply(variables, X, train=True, rngs=streams, mutable=["batch_stats"])

    (a, after), (b, _), (c, _) = (run(jax.random.key(i)) for i in (0, 1, 0))
    np.testing.assert_array_equal(a, c)
    assert not np.array_equal(a, b) and not module.training
    module[3].eval()
    h = module[0](leafax.tensor(X)).detach().numpy()
    got = after["batch_stats"]["1"]
    np.testing.assert_allclose(got["running_mean"], 0.1 * h.mean(0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(got["running_var"], 0.9 + 0.1 * h.var(0, ddof=1), rtol=1e-5)
    assert got["num_batches_tracked"] == 1 and module[1].num_batches_tracked == 0
    from flax.errors import InvalidRngError

    with pytest.raises(InvalidRngError, match='needs PRNG for "dropout"'):
        made.apply(variables, X, train=True, mutable=["batch_stats"])
    mapped = jax.vmap(lambda x: made.apply(variables, x[None])[0])(X)
    np.testing.assert_allclose(mapped, made.apply(variables, X), rtol=1e-6)


class Whole(flax_nn.Module):
    """A linen module with a leafax one inside."""

    body: Any

    @flax_nn.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        return flax_nn.Dense(2)(linen.FromModule(self.body, name="body")(x, train=train))


def fit(model: Any, steps: int = 4) -> list[float]:
    optimizer = leafax.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(leafax.tensor(X)) - leafax.tensor(Y)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    runs = [r for r in leafax._runtime.cut.history if r.reason == "optimizer.step()"]
    assert [r.how for r in runs[-steps + 2 :]] == ["cached"] * (steps - 2), "one program a step"
    return losses


def test_it_trains_in_a_flax_model_of_leafax() -> None:
    body = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh())
    model = linen.Model(Whole(body), Whole(body).init(jax.random.key(0), X))
    names = {"body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias"}
    assert {n for n, _ in model.named_parameters()} == names | {"Dense_0.kernel", "Dense_0.bias"}
    model.freeze("body.0")
    losses = fit(model)
    assert losses[-1] < losses[0]
    assert model.get_buffer("body.1.num_batches_tracked") == 4
    assert model.get_parameter("body.0.weight").tolist() == body[0].weight.tolist()
    assert model.get_parameter("body.1.bias").tolist() != body[1].bias.tolist()


def test_a_module_is_an_nnx_module_too() -> None:
    module = net().eval()
    made = nnx_models.from_module(module, rngs=nnx.Rngs(0))
    want = module(leafax.tensor(X))
    np.testing.assert_allclose(nnx.jit(lambda m, x: m(x))(made, X), want.detach(), rtol=1e-6)
    got: Any = nnx.grad(lambda m: ((m(X) - Y) ** 2).mean())(made)
    ((want - leafax.tensor(Y)) ** 2).mean().backward()
    for name, p in module.named_parameters():
        path, _, leaf = name.rpartition(".")
        np.testing.assert_allclose(got[path][leaf].get_value(), p.grad, rtol=1e-5, atol=1e-7)
    made.train()
    assert not np.array_equal(made(X), made(X))
    model = nnx_models.Model(made)
    assert model.get_buffer("1.num_batches_tracked") == 2
    losses = fit(model)
    assert losses[-1] < losses[0] and module[1].num_batches_tracked == 0
    without = nnx_models.from_module(net())
    with pytest.raises(ValueError, match="the module draws random numbers while it trains: give"):
        without(X)


def test_what_cannot_be_inside_is_told() -> None:
    with pytest.raises(TypeError, match="`module` must be a `leafax.nn.Module`, got `Dense`"):
        linen.from_module(flax_nn.Dense(2))  # type: ignore[arg-type]
    named = nn.ModuleDict({"rngs": nn.Linear(2, 2)})
    with pytest.raises(ValueError, match="`rngs.weight` cannot be a variable in nnx: modules"):
        nnx_models.from_module(named)


# ---------------------------------------------------------------- a Flax model inside of a module


class FlaxHead(flax_nn.Module):
    """A norm and two layers of linen."""

    @flax_nn.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        x = flax_nn.BatchNorm(not train, momentum=0.9, name="norm")(x)
        return flax_nn.Dense(2, name="out")(flax_nn.tanh(flax_nn.Dense(3, name="dense")(x)))


class NnxHead(nnx.Module):
    """The same of nnx."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.norm = nnx.BatchNorm(5, momentum=0.9, rngs=rngs)
        self.dense, self.out = nnx.Linear(5, 3, rngs=rngs), nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(nnx.tanh(self.dense(self.norm(x))))


class Both(nn.Module):
    """A module with a Flax model for a child."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.body = nn.Linear(4, 5)
        self.head = head

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


def flax_head(kind: str) -> Any:
    if kind == "nnx":
        return nnx_models.Model(NnxHead())
    return linen.Model(FlaxHead(), FlaxHead().init(jax.random.key(0), jnp.ones((2, 5))))


@pytest.fixture(params=["linen", "nnx"])
def both(request: Any) -> Any:
    leafax.manual_seed(0)
    return Both(flax_head(request.param))


def test_a_flax_model_is_a_child_of_a_module(both: Any) -> None:
    model = both.head.model
    parameters = dict(both.named_parameters())
    assert set(parameters) == {"body.weight", "body.bias"} | {
        f"head.{name}" for name, _ in model.named_parameters()
    }
    assert parameters["head.out.kernel"] is model.get_parameter("out.kernel")
    assert both.get_parameter("head.out.kernel") is parameters["head.out.kernel"]
    assert dict(both.named_buffers()).keys() == {"head.norm.mean", "head.norm.var"}
    assert set(both.state_dict()) == {*parameters, "head.norm.mean", "head.norm.var"}
    assert [n for n, _ in both.named_children()] == ["body", "head"]
    assert repr(both).splitlines()[2].startswith("  (head): ") and "6 parameters of" in repr(both)
    both.eval()
    assert not model.training
    both.train()
    assert model.training and both.head.training
    seen: list[Any] = []
    both.apply(lambda m: seen.append(m))
    assert both.head in seen and both.body in seen
    both.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())
    both.requires_grad_()
    both.double()
    assert {p.dtype for p in model.parameters()} == {leafax.float64}
    assert model.get_buffer("norm.mean").dtype == leafax.float64
    assert model.get_buffer("norm.mean") is both.get_buffer("head.norm.mean")


def test_one_optimizer_trains_both_in_one_program(both: Any) -> None:
    model = both.head.model
    before = {name: t.numpy().copy() for name, t in both.state_dict().items()}
    losses = fit(both)
    assert losses[-1] < losses[0]
    after = {name: t.numpy() for name, t in both.state_dict().items()}
    assert all(not np.array_equal(before[n], after[n]) for n in before), "all of it trains"
    assert all(p.grad is not None for p in model.parameters())
    both.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    # The first loss and its gradients by hand, with JAX.
    again = Both(flax_head("nnx" if isinstance(model, nnx_models.Model) else "linen"))
    again.load_state_dict({n: leafax.tensor(v) for n, v in before.items()})
    tensors = dict(again.named_parameters())
    ((again(leafax.tensor(X)) - leafax.tensor(Y)) ** 2).mean().backward()

    def loss(p: Any) -> Any:
        x = X @ p["body.weight"].T + p["body.bias"]
        x = (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5) * p["head.norm.scale"] + p["head.norm.bias"]
        x = jnp.tanh(x @ p["head.dense.kernel"] + p["head.dense.bias"])
        return ((x @ p["head.out.kernel"] + p["head.out.bias"] - Y) ** 2).mean()

    value, grads = jax.value_and_grad(loss)({n: jnp.array(before[n]) for n in tensors})
    np.testing.assert_allclose(losses[0], value, rtol=1e-5)
    for name, p in tensors.items():
        np.testing.assert_allclose(p.grad, grads[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_models_of_their_own(both: Any, copied: Any) -> None:
    both.eval()
    x = leafax.tensor(X)
    want = both(x).tolist()
    other = copied(both)
    assert other(x).tolist() == want and other.head.model is not both.head.model
    with leafax.no_grad():
        for p in other.head.parameters():
            p.zero_()
    assert other(x).tolist() == [[0.0, 0.0]] * 6 and both(x).tolist() == want
    other.load_state_dict(both.state_dict(), assign=True)
    assert other(x).tolist() == want
    zeros = {f"head.{n}": leafax.zeros_like(p) for n, p in both.head.model.named_parameters()}
    assert leafax.func.functional_call(both, zeros, (x,)).tolist() == [[0.0, 0.0]] * 6
    assert both(x).tolist() == want


def test_containers_take_flax_models() -> None:
    model = flax_head("nnx")
    layers = nn.Sequential(nn.Linear(4, 5), model)
    assert layers[1].model is model and len(list(layers.parameters())) == 8
    assert nn.ModuleList([model])[0] is layers[1], "one model is one child"
    assert layers(leafax.tensor(X)).shape == (6, 2)
    layers[1].freeze("dense")
    assert not model.get_parameter("dense.kernel").requires_grad


def test_fine_tuning_reaches_into_the_flax_child(both: Any) -> None:
    model, x = both.head.model, leafax.tensor(X)
    linear, norm = (
        (nnx.Linear, nnx.BatchNorm) if isinstance(model, nnx_models.Model)
        else (flax_nn.Dense, flax_nn.BatchNorm)
    )  # fmt: skip
    want = both(x).detach()  # now linen knows its submodules, too
    freeze(both, linear)
    assert trained(both) == ["body.weight", "body.bias", "head.norm.bias", "head.norm.scale"]
    freeze(both, norm, stats=True)
    assert model._stopped() == {"norm.mean", "norm.var"} and len(trained(both)) == 2
    assert trained(unfreeze(both, last=1)) == [
        "body.weight", "body.bias", *[f"head.{n}" for n, _ in model.named_parameters()],
    ]  # fmt: skip
    adapter = lora.add(both, ["body", "head.dense"], rank=2)
    assert [*adapter.factors] == ["body.weight", "head.dense.kernel"]
    np.testing.assert_allclose(both(x).detach(), want, rtol=1e-5, atol=1e-6)
    both(x).sum().backward()
    assert all(f.b.grad is not None and f.b.grad.any() for f in adapter.factors.values())
    assert all(p.grad is None for p in both.parameters())
    with pytest.raises(
        ValueError, match="`head.dense` lies in a Flax model, which watches its own"
    ):
        watch(both, "head.dense")
    with watch(both, "head") as seen, watch(both.head, "dense") as deeper:
        both(x)
    assert seen["head"].shape == (6, 2) and deeper["dense"].shape == (6, 3)


def trained(module: Any) -> list[str]:
    return [name for name, p in module.named_parameters() if p.requires_grad]


# ---------------------------------------------------------------- numbers there and back


class FlaxLayers(flax_nn.Module):
    """One of each layer that has numbers."""

    @flax_nn.compact
    def __call__(self, x: Any, ids: Any) -> Any:
        x = flax_nn.Conv(6, (3, 3), padding=1, name="conv")(x)
        x = flax_nn.Conv(6, (3, 3), padding=1, feature_group_count=2, name="grouped")(x)
        x = flax_nn.ConvTranspose(6, (3, 2), strides=(2, 2), padding="VALID", name="up")(x)
        x = flax_nn.BatchNorm(True, name="norm")(x)
        x = x.reshape(x.shape[0], -1, 6) + flax_nn.Embed(7, 6, name="table")(ids)[:, None]
        x = flax_nn.LayerNorm(epsilon=1e-5, name="layer_norm")(x)
        x = x + flax_nn.MultiHeadDotProductAttention(2, name="attention")(x, x)
        return flax_nn.Dense(3, name="dense")(x)


class Layers(nn.Module):
    """The same, channels first."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 6, 3, padding=1)
        self.grouped = nn.Conv2d(6, 6, 3, padding=1, groups=2)
        self.up = nn.ConvTranspose2d(6, 6, (3, 2), stride=2)
        self.norm = nn.BatchNorm2d(6)
        self.table = nn.Embedding(7, 6)
        self.layer_norm = nn.LayerNorm(6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.dense = nn.Linear(6, 3)

    def forward(self, x: Any, ids: Any) -> Any:
        x = self.norm(self.up(self.grouped(self.conv(x.permute(0, 3, 1, 2)))))
        x = x.flatten(2).mT + self.table(ids)[:, None]
        x = self.layer_norm(x)
        return self.dense(x + self.attention(x, x, x)[0])


def test_the_same_numbers_compute_the_same_in_both() -> None:
    images = RNG.normal(size=(2, 5, 4, 2)).astype("float32")
    ids = np.array([3, 6])
    leafax.manual_seed(0)
    module = Layers().eval()
    with leafax.no_grad():
        for t in [*module.parameters(), module.norm.running_mean]:
            t.copy_(leafax.randn(t.shape) * 0.5)
        module.norm.running_var.uniform_(0.5, 2)
    like = jax.eval_shape(FlaxLayers().init, jax.random.key(0), images, ids)
    variables, report = weights.to_flax(module, like)
    assert {row.how for row in report.rows} == {
        "same", "transposed", "convolution", "flipped", "heads",
    }  # fmt: skip
    want = module(leafax.tensor(images), leafax.tensor(ids)).detach()
    np.testing.assert_allclose(
        jax.jit(FlaxLayers().apply)(variables, images, ids), want, rtol=1e-4, atol=1e-5
    )
    again = Layers().eval()
    weights.from_flax(again, variables)
    mine, theirs = module.state_dict(), again.state_dict()
    assert all(mine[n].tolist() == theirs[n].tolist() for n in mine), "to the last bit"
    model = linen.Model(FlaxLayers(), jax.tree.map(jnp.zeros_like, variables))
    assert weights.to_flax(module, model)[0] is model
    third = Layers()
    weights.from_flax(third, model)
    assert all(mine[n].tolist() == t.tolist() for n, t in third.state_dict().items())


def test_names_and_what_does_not_fit() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tree = {"params": {"layer_0": {"kernel": X[:3, :3], "bias": X[0, :3]},
                       "layer_1": {"kernel": X[3:, :3], "bias": X[1, :3]}}}  # fmt: skip
    names = {"0": "layer_1", "1": "layer_0"}
    weights.from_flax(module, tree, names=names)
    assert module[0].weight.tolist() == X[3:, :3].T.tolist()
    back, _ = weights.to_flax(module, tree, names=names)
    assert jax.tree.all(jax.tree.map(np.array_equal, back, tree))
    with pytest.raises(ValueError, match="2 missing: 1.weight, 1.bias"):
        weights.from_flax(module, {"params": {"0": tree["params"]["layer_0"]}})
    wide = nn.ConvTranspose2d(2, 3, 2)
    kernel = RNG.normal(size=(2, 2, 3, 2)).astype("float32")  # that of `transpose_kernel=True`
    weights.from_flax(wide, {"kernel": kernel, "bias": X[0, :3]})
    layer = flax_nn.ConvTranspose(3, (2, 2), padding="VALID", transpose_kernel=True)
    images = RNG.normal(size=(1, 3, 3, 2)).astype("float32")
    got = layer.apply({"params": {"kernel": kernel, "bias": X[0, :3]}}, images)
    want = wide(leafax.tensor(images).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(got, want.detach(), rtol=1e-5, atol=1e-6)
