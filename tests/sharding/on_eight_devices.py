"""Tests that need eight devices; `test_sharding.py` runs them in a process of their own."""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leafax as torch
import leafax.nn.functional as F
from leafax import nn
from leafax.adapters import freeze, linen, lora, shard, shard_batch, summary
from leafax.adapters.nnx import Model as NnxModel
from leafax.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.append(str(Path(__file__).parents[2] / "examples"))
TENSORS = np.random.default_rng(0)


def mesh_of(**axes: int) -> Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes))


def rows(path: str, t: Any) -> P:
    """Split the first dimension that eight devices divide."""
    n = next((d for d, length in enumerate(t.shape) if length % 8 == 0 and t.ndim > 1), None)
    return P() if n is None else P(*[None] * n, "fsdp")


class Task(NamedTuple):
    """A model with a batch and a loss.

    Attributes:
      make: returns the model and what is trained of it.
      parallel: rules of tensor parallelism, over the axis "model".
    """

    make: Callable[[], tuple[Any, list[Any]]]
    batch: tuple[np.ndarray, np.ndarray]
    parallel: dict[Any, P]


def mlp() -> tuple[Any, list[Any]]:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    return model, list(model.parameters())


def lite() -> tuple[Any, list[Any]]:
    module: Any = importlib.import_module("models.efficientnet_lite")
    module.BLOCKS = [module.BlockSpec(kernel=3, stride=1, expand=4, features=8)]
    module.STEM_FEATURES, module.HEAD_FEATURES = 8, 64
    model = linen.Model.from_batch(module.EfficientNetLite0(8, dropout=0.2), IMAGES[:1])
    return model, list(model.parameters())


def minilm() -> tuple[Any, list[Any]]:
    module: Any = importlib.import_module("models.minilm")
    module.LAYERS, module.WIDTH, module.HEADS, module.HIDDEN = 1, 32, 4, 64
    module.VOCABULARY, module.POSITIONS = 64, 16
    model = linen.Model.from_batch(module.MiniLM(8), WORDS[:1])
    freeze(model).unfreeze("head")
    rank = lora.add(model, {"layer_*.query": {}, "layer_*.value": {}}, rank=4)
    return model, [*model.head.parameters(), *rank.parameters()]


def transformer() -> tuple[Any, list[Any]]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(64, 32), body, nn.Flatten(), nn.Linear(32 * 8, 8))
    return model, list(model.parameters())


LABELS = TENSORS.integers(0, 8, 16)
IMAGES = TENSORS.normal(size=(16, 16, 16, 3)).astype("float32")
WORDS = TENSORS.integers(1, 64, (16, 8))
TASKS = {
    "mlp": Task(
        mlp, (TENSORS.normal(size=(16, 16)).astype("float32"), LABELS),
        {"0.*": P("model"), "2.weight": P(None, "model")},
    ),
    "lite": Task(lite, (IMAGES, LABELS), {"**.expand.conv.kernel": P(None, None, None, "model")}),
    "minilm": Task(
        minilm, (WORDS, LABELS),
        {("layer_*.query.kernel", "layer_*.key.kernel", "layer_*.value.kernel"): P(None, "model"),
         "layer_*.up.kernel": P(None, "model"),
         ("layer_*.out.kernel", "layer_*.down.kernel"): P("model")},
    ),
    "transformer": Task(
        transformer, (WORDS, LABELS),
        {"**.in_proj_*": P("model"), "**.out_proj.weight": P(None, "model"),
         "**.linear1": P("model"), "**.linear2.weight": P(None, "model")},
    ),
}  # fmt: skip


class Layout(NamedTuple):
    mesh: Mesh
    rules: dict[Any, Any]
    batch: P


def layout_of(name: str, task: Task) -> Layout:
    if name == "dp":
        return Layout(mesh_of(data=8), {}, P("data"))
    if name == "fsdp":
        return Layout(mesh_of(fsdp=8), {"**": rows}, P("fsdp"))
    return Layout(mesh_of(data=4, model=2), task.parallel, P("data"))


class Ran(NamedTuple):
    losses: list[float]
    compiles: int
    model: Any
    optimizer: Any


def train(task: Task, layout: Layout | None, steps: int = 4, compiled: bool = False) -> Ran:
    torch.manual_seed(0)
    model, trained = task.make()
    if layout is not None:
        shard(model, layout.mesh, layout.rules)
    optimizer = torch.optim.AdamW(trained, lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = torch.compile(step) if compiled else step
    model.train()
    torch.synchronize()
    torch.explain(clear=True)
    losses = []
    for _ in range(steps):
        x, y = map(torch.from_numpy, task.batch)
        if layout is not None:
            x, y = shard_batch(layout.mesh, layout.batch, x, y)
        losses.append(call(x, y).item())
    return Ran(losses, torch.explain().compiles, model, optimizer)


def shape_on_each(t: Any, mesh: Mesh, spec: P) -> tuple[int, ...]:
    """Work out what each device has of a tensor, from its spec."""
    sizes = dict(mesh.shape)
    parts = [s if isinstance(s, tuple) else (s,) if s else () for s in spec]
    parts += [()] * (t.ndim - len(parts))
    pairs = zip(t.shape, parts, strict=True)
    return tuple(n // math.prod(sizes[axis] for axis in axes) for n, axes in pairs)


def bytes_on_each(tensors: Any) -> set[int]:
    found = dict.fromkeys(jax.devices(), 0)
    for t in tensors:
        for part in t.detach().jax().addressable_shards:
            found[part.device] += part.data.nbytes
    return set(found.values())


def spec_of(t: Any) -> P:
    sharding = t.detach().jax().sharding
    assert isinstance(sharding, NamedSharding)
    return sharding.spec


@pytest.fixture(scope="module")
def alone() -> Iterator[Callable[[str], Ran]]:
    """Runs on one device, by task."""
    made: dict[str, Ran] = {}

    def ran(name: str) -> Ran:
        if name not in made:
            made[name] = train(TASKS[name], None)
        return made[name]

    yield ran


@pytest.mark.quick(1, each="name")
@pytest.mark.parametrize("how", ["dp", "fsdp", "dp x tp"])
@pytest.mark.parametrize("name", TASKS)
def test_a_run_on_a_mesh_is_that_of_one_device(
    name: str, how: str, alone: Callable[[str], Ran]
) -> None:
    """Losses, programs that are compiled, and what each device holds, worked out from the specs."""
    layout = layout_of(how, TASKS[name])
    wanted, found = alone(name), train(TASKS[name], layout)
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-5, atol=1e-5)
    assert found.compiles == wanted.compiles
    held, tensors = 0, []
    model = found.model
    named = dict(model.named_parameters())
    for p in named.values():
        state = found.optimizer.state.get(p, {})
        own = math.prod(shape_on_each(p, layout.mesh, spec_of(p))) * p.element_size()
        beside = [t for t in (p.grad, *state.values()) if t is not None and t.ndim]
        assert {spec_of(t) for t in beside} <= {spec_of(p)}
        held += own * (1 + len(beside))
    tensors = [
        t for p in named.values() for t in (p, p.grad, *found.optimizer.state.get(p, {}).values())
    ]
    assert bytes_on_each([t for t in tensors if t is not None and t.ndim]) == {held}
    split = [n for n, p in named.items() if any(spec_of(p))]
    assert bool(split) == (how != "dp"), split
    for b, other in zip(model.buffers(), wanted.model.buffers(), strict=True):
        np.testing.assert_allclose(b.numpy(), other.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("how", ["dp", "dp x tp"])
def test_a_compiled_step(how: str, alone: Callable[[str], Ran]) -> None:
    found = train(TASKS["mlp"], layout_of(how, TASKS["mlp"]), compiled=True)
    np.testing.assert_allclose(found.losses, alone("mlp").losses, rtol=1e-5)
    assert found.compiles <= 1  # none where the plain loop was met before


def linear(spec: P, mesh: Mesh, **options: Any) -> Any:
    torch.manual_seed(0)
    return shard(nn.Linear(16, 8, **options), mesh, {"weight": spec})


def take_step(model: Any, optimizer: Any, x: Any) -> float:
    optimizer.zero_grad()
    loss = (model(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    return float(loss.item())


X = TENSORS.normal(size=(16, 16)).astype("float32")
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
    "optax": lambda p: torch.optim.Optax(p, optax.adamw(0.1)),
}


def states_of(optimizer: Any) -> list[Any]:
    held = optimizer.state_dict()["state"].values()
    found = [t for h in held for t in (h.values() if isinstance(h, dict) else [h])]
    return [t for t in found if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_follows_its_parameter(name: str) -> None:
    """Made before the model is placed, after it, or loaded."""
    mesh, x = mesh_of(data=4, model=2), torch.from_numpy(X)
    torch.manual_seed(0)
    alone = nn.Linear(16, 8)
    first = OPTIMIZERS[name](alone.parameters())
    wanted = [take_step(alone, first, x) for _ in range(3)]
    loaded = deepcopy(first.state_dict())
    found = []
    late = deepcopy(alone)
    for before in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(16, 8)
        if not before:
            shard(model, mesh, {"weight": P(None, "model")})
        optimizer = OPTIMIZERS[name](model.parameters())
        losses = [take_step(model, optimizer, x)]
        if before:
            shard(model, mesh, {"weight": P(None, "model")})
        losses += [take_step(model, optimizer, x) for _ in range(2)]
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        found.append(sorted((tuple(t.shape), str(spec_of(t))) for t in states_of(optimizer)))
    optimizer = OPTIMIZERS[name](shard(late, mesh, {"weight": P(None, "model")}).parameters())
    optimizer.load_state_dict(loaded)
    np.testing.assert_allclose(take_step(late, optimizer, x), take_step(alone, first, x), rtol=1e-5)
    found.append(sorted((tuple(t.shape), str(spec_of(t))) for t in states_of(optimizer)))
    assert found[0] == found[1] == found[2]
    assert str(P(None, "model")) in {spec for _, spec in found[0]}


def test_accumulated_gradients_and_averages_lie_as_their_parameters() -> None:
    mesh, x = mesh_of(data=4, model=2), torch.from_numpy(X)
    model = linear(P("model"), mesh)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    late = nn.Linear(16, 8)
    late_ema = AveragedModel(late, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    late.load_state_dict(model.state_dict())
    shard(late, mesh, {"weight": P("model")})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.explain(clear=True)
    counts = []
    for _ in range(3):
        optimizer.zero_grad()
        for part in shard_batch(mesh, P("data"), *x.chunk(2)):
            (model(part) ** 2).mean().backward()
            assert spec_of(model.weight.grad) == P("model")
        optimizer.step()
        ema.update_parameters(model)
        late_ema.update_parameters(late)
        torch.synchronize()
        counts.append(torch.explain().compiles)
    assert spec_of(ema.module.weight) == spec_of(late_ema.module.weight) == P("model")
    assert spec_of(ema.module.bias) == spec_of(late_ema.module.bias) == P()
    assert counts[1] == counts[2]


def test_averages_of_a_flax_model_lie_as_its_parameters() -> None:
    model = NnxModel(nnx.Linear(16, 8, rngs=nnx.Rngs(0)))
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.shard(mesh_of(data=4, model=2), {"kernel": P(None, "model")})
    for _ in range(2):
        take_step(model, optimizer, torch.from_numpy(X))
        ema.update_parameters(model)
    specs = {name: spec_of(t) for name, t in ema.named_parameters()}
    assert specs == {"bias": P(), "kernel": P(None, "model")}


def test_a_step_that_was_compiled_before_its_model_was_placed() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(16, 8), torch.from_numpy(X)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(lambda x: take_step(model, optimizer, x))
    alone = deepcopy(model)
    other = torch.optim.SGD(alone.parameters(), lr=0.1)
    wanted = [take_step(alone, other, x) for _ in range(5)]
    found = [step(x) for _ in range(2)]
    shard(model, mesh_of(data=4, model=2), {"weight": P("model")})
    found += [step(x) for _ in range(3)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert (spec_of(model.weight), spec_of(model.bias)) == (P("model"), P())


def test_frozen_leaves_lie_otherwise() -> None:
    mesh, x = mesh_of(data=4, model=2), torch.from_numpy(X)
    torch.manual_seed(0)
    model = freeze(nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 8)), "0")
    rules: dict[Any, Any] = {
        (lambda _, t: not t.requires_grad): lambda _, t: P(("data", "model")),
        "1.weight": P("model"),
    }  # fmt: skip
    shard(model, mesh, rules)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    losses = [take_step(model, optimizer, x) for _ in range(2)]
    assert [spec_of(p) for p in model.parameters()] == [
        P(("data", "model")), P(("data", "model")), P("model"), P(),
    ]  # fmt: skip
    assert losses[1] < losses[0] and model[0].weight.grad is None
    text = summary(model).text()
    assert "P(('data', 'model'))" in text and "P('model')" in text


def test_what_is_written_in_place_stays_where_it_is() -> None:
    model = linear(P("model"), mesh_of(data=4, model=2))
    for write in (
        lambda p: p.mul_(2), lambda p: p.zero_(), lambda p: p.copy_(torch.ones(8, 16)),
        lambda p: nn.init.normal_(p), lambda p: p[0].fill_(3.0),
    ):  # fmt: skip
        with torch.no_grad():
            write(model.weight)
        assert spec_of(model.weight) == P("model")
    before = model.weight.detach().numpy()
    model.load_state_dict({"weight": torch.zeros(8, 16), "bias": torch.zeros(8)})
    assert spec_of(model.weight) == P("model") and before.any()


def test_random_numbers_are_those_of_one_device_and_bind_nobody() -> None:
    model = linear(P("model"), mesh_of(data=4, model=2))
    torch.manual_seed(3)
    found = F.dropout(model(torch.ones(16, 16)), 0.5).detach().numpy()
    here = torch.rand(3)
    alone = nn.Linear(16, 8)
    alone.load_state_dict({n: torch.from_numpy(t.numpy()) for n, t in model.state_dict().items()})
    torch.manual_seed(3)
    wanted = F.dropout(alone(torch.ones(16, 16)), 0.5).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(here.numpy(), torch.rand(3).numpy())
    assert len(here.jax().devices()) == 1 and not here.jax().committed


def test_models_of_nnx_and_arrays_that_others_hold() -> None:
    mesh = mesh_of(data=4, model=2)
    module = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    kernel = module.kernel[...]
    model = NnxModel(module).shard(mesh, {"**.kernel": P(None, "model")})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    take_step(model, optimizer, torch.from_numpy(X))
    assert spec_of(model.get_parameter("kernel")) == P(None, "model")
    assert np.asarray(kernel).shape == (16, 8)  # not given away


def test_low_rank_factors_lie_as_their_kernels() -> None:
    model = linear(P("model"), mesh_of(data=4, model=2))
    adapter = lora.add(model, "weight", rank=2)
    specs = {name: spec_of(p) for name, p in adapter.named_parameters()}
    assert specs == {"weight.lora_a": P(), "weight.lora_b": P(None, "model")}


def test_meshes_that_are_set_and_explicit_ones_that_are_given() -> None:
    """An explicit one is taken as an automatic one, also where an array brings it."""
    explicit, auto = (
        jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind,) * 2)
        for kind in (AxisType.Explicit, AxisType.Auto)
    )
    model = linear(P("model"), explicit)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for mesh in (explicit, auto):
        x = torch.as_tensor(jax.device_put(X, NamedSharding(mesh, P("data"))))
        losses.append(take_step(model, optimizer, x))
        with jax.set_mesh(auto):
            losses.append(take_step(model, optimizer, x))
    assert losses == sorted(losses, reverse=True) and spec_of(model.weight) == P("model")


def test_an_explicit_mesh_that_is_set_is_refused() -> None:
    mesh = mesh_of(data=4, model=2)
    model = linear(P("model"), mesh)
    words = re.escape(
        "a mesh with explicit axes is set, and programs of leafax are split by XLA: set "
        "jax.make_mesh((4, 2), ('data', 'model'), axis_types=(jax.sharding.AxisType.Auto,) * 2) "
        "instead, or none"
    )
    with jax.set_mesh(mesh):
        with pytest.raises(RuntimeError, match=words) as error:
            model(torch.ones(16, 16)).sum().item()
        assert any(f"ran at {__file__}:" in note for note in error.value.__notes__)
        with pytest.raises(RuntimeError, match=words):
            shard_batch(mesh, P("data"), X)
    assert math.isfinite(model(torch.ones(16, 16)).sum().item())


def test_what_was_computed_while_an_explicit_mesh_was_set_is_used_elsewhere() -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
    x = shard_batch(mesh, P("data"), np.ones((8, 2)))
    with jax.set_mesh(mesh):
        made = torch.ones(2) * 2
        assert made.sum().item() == 4
    assert (x * made).sum().item() == 32 and (made * x).sum().item() == 32
    assert (made * torch.ones(2, device="cpu:2")).sum().item() == 4


ERRORS: tuple[tuple[type[Exception], str, Callable[[Mesh, Any], Any]], ...] = (
    (
        ValueError,
        "`weight` of shape (8, 16): P(None, 'fsdp') names the axis 'fsdp', and the mesh has 'data' "
        "of 4, 'model' of 2",
        lambda mesh, model: shard(model, mesh, {"weight": P(None, "fsdp")}),
    ),
    (
        ValueError,
        "`bias` of shape (8,): P(None, 'model') has 2 entries for 1 dimension: shorten it, or give "
        "such tensors a rule of their own before this one",
        lambda mesh, model: shard(model, mesh, {"**": P(None, "model")}),
    ),
    (
        ValueError,
        "`batch[1]['y']` of shape (6,): P('data') splits dimension 0 of length 6 in 4, which does "
        "not divide it: split another dimension, pad it to 8, or give such tensors P() by a rule "
        "before this one",
        lambda mesh, _: shard_batch(mesh, P("data"), torch.ones(8), {"y": torch.ones(6)}),
    ),
    (
        ValueError,
        "`weight` of shape (8, 16): P('model', 'model') names the axis 'model' twice: it can split "
        "one dimension only",
        lambda mesh, model: shard(model, mesh, {"weight": P("model", "model")}),
    ),
    (
        ValueError,
        "pattern `**.kernel` matches none of the 2 paths; the nearest are `weight`, `bias`.",
        lambda mesh, model: shard(model, mesh, {"**.kernel": P("model")}),
    ),
    (
        ValueError,
        "every tensor that `bias` selects has an earlier rule already: put the narrower pattern "
        "first",
        lambda mesh, model: shard(model, mesh, {"**": P(), "bias": P("model")}),
    ),
    (
        TypeError,
        "`weight`: expected a `jax.sharding.PartitionSpec`, got `str`: write P('axis', None) for "
        "it, one entry a dimension",
        lambda mesh, model: shard(model, mesh, {"weight": "model"}),
    ),
    (
        TypeError,
        "expected a `jax.sharding.Mesh`, got `int`: make one by jax.make_mesh((8,), ('data',))",
        lambda _, model: shard(model, 8, {}),
    ),
)


@pytest.mark.parametrize("kind, words, call", ERRORS, ids=range(len(ERRORS)))
def test_what_does_not_fit_is_told_and_moves_nothing(
    kind: type[Exception], words: str, call: Callable[[Mesh, Any], Any]
) -> None:
    model = nn.Linear(16, 8)
    with pytest.raises(kind) as error:
        call(mesh_of(data=4, model=2), model)
    assert str(error.value).startswith(words)
    assert {len(p.detach().jax().devices()) for p in model.parameters()} == {1}
