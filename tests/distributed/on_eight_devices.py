"""Tests that need eight devices; `test_meshes.py` runs them in a process of their own."""

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import leafax as torch
import leafax.distributed as dist
from leafax import nn
from leafax.distributed.device_mesh import DeviceMesh, init_device_mesh
from leafax.distributed.fsdp import CPUOffload, FSDPModule, MixedPrecisionPolicy, fully_shard
from leafax.distributed.fsdp import FullyShardedDataParallel as FSDP
from leafax.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from leafax.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from leafax.nn.parallel._gradient_average import average_gradients

MESH = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
BATCHES = [
    (draw.normal(size=(16, 8)).astype(np.float32), draw.integers(0, 3, 16))
    for draw in map(np.random.default_rng, range(4))
]


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", world_size=1, rank=0)
    yield
    dist.destroy_process_group()


def test_meshes_have_shapes_names_and_parts() -> None:
    assert repr(MESH) == "DeviceMesh((dp=4, tp=2), 'cpu', stride=(2, 1))"
    assert repr(init_device_mesh("cpu", (8,))) == "DeviceMesh((8,), 'cpu', stride=(1,))"
    assert (MESH.shape, MESH.ndim, MESH.size(), MESH.size("tp")) == ((4, 2), 2, 8, 2)
    assert MESH.mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    part = MESH["tp"]
    assert repr(part) == "DeviceMesh((tp=2), 'cpu', stride=(1,))" and part.mesh.tolist() == [0, 1]
    assert MESH["dp"].mesh.tolist() == [0, 2, 4, 6] and MESH["dp", "tp"] is MESH
    assert MESH.get_coordinate() == [0, 0] and MESH.get_local_rank("tp") == 0
    own = DeviceMesh("cpu", [[3, 1], [0, 2]])
    assert own.mesh_dim_names is None and own.mesh.tolist() == [[3, 1], [0, 2]]
    assert own.get_coordinate() == [0, 0] and MESH.get_group("dp").size() == 1
    assert MESH == init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp")) != own
    assert copy.deepcopy(MESH) is MESH and len({MESH, MESH["tp"], part}) == 2


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too many": (
        lambda: init_device_mesh("cpu", (4, 4)), RuntimeError,
        "Mesh should not be bigger than the 8 devices of 'cpu' that there are over all processes, "
        "but found 16 ranks!",
    ),
    "no such device": (
        lambda: DeviceMesh("cpu", [8]), RuntimeError,
        "the mesh has device 8, and there are 8 of 'cpu' over all processes",
    ),
    "no names": (
        lambda: init_device_mesh("cpu", (8,))["dp"], RuntimeError,
        "Cannot slice a DeviceMesh without mesh_dim_names!",
    ),
    "other name": (
        lambda: MESH["pp"], KeyError,
        "\"Invalid mesh_dim_names ('pp',) specified. Valid mesh_dim_names are ['dp', 'tp'].\"",
    ),
    "placements": (
        lambda: distribute_tensor(torch.ones(8), MESH, [Shard(0)]), ValueError,
        "`placements` must have the same length as `device_mesh.ndim`! Found placements length: 1, "
        "and device_mesh.ndim: 2.",
    ),
    "dimension": (
        lambda: distribute_tensor(torch.ones(8), MESH["tp"], [Shard(1)]), IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    "length": (
        lambda: distribute_tensor(torch.ones(6), MESH["dp"], [Shard(0)]), ValueError,
        "`tensor` of shape (6,): P('dp') splits dimension 0 of length 6 in 4, which does not "
        "divide it: split another dimension, pad it to 8, or give such tensors P() by a rule "
        "before this one",
    ),
    "partial": (
        lambda: distribute_tensor(torch.ones(8), MESH["dp"], [Partial()]), NotImplementedError,
        "leafax has no tensors whose parts are to be added, as Partial(sum) says: XLA adds them "
        "where a program needs the sum. Use Shard or Replicate",
    ),
    "no leaf": (
        lambda: distribute_tensor(torch.ones(8, requires_grad=True) * 1, MESH), RuntimeError,
        "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!",
    ),
    "plain": (
        lambda: attrgetter("full_tensor")(torch.ones(8)), AttributeError,
        "'Tensor' object has no attribute 'full_tensor'",
    ),
    "casts": (
        lambda: fully_shard(nn.Linear(8, 8), mp_policy=MixedPrecisionPolicy(torch.bfloat16)),
        NotImplementedError,
        "leafax does not cast parameters that are split: compute in other dtypes by "
        "`torch.autocast`, or convert the module",
    ),
    "host": (
        lambda: FSDP(nn.Linear(8, 8), cpu_offload=CPUOffload(True)), NotImplementedError,
        "leafax does not keep parameters that are split on the host",
    ),
    "style": (
        lambda: parallelize_module(nn.LayerNorm(8), MESH["tp"], ColwiseParallel()),
        NotImplementedError, "ColwiseParallel currently only support nn.Linear and nn.Embedding!",
    ),
    "dimensions": (
        lambda: parallelize_module(nn.Linear(8, 8), MESH, ColwiseParallel()), ValueError,
        'Tensor Parallel only accepts a 1D DeviceMesh, but found 2D! If you have a 2-D or N-D '
        'device_mesh, consider passing in device_mesh["tp"]',
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(mistake: str) -> None:
    call, kind, said = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == said


def test_a_plan_that_matches_nothing_warns() -> None:
    with pytest.warns(UserWarning, match="no submodule matching token 'b' in module"):
        parallelize_module(nn.Sequential(nn.Linear(8, 8)), MESH["tp"], {"b.w": ColwiseParallel()})
    with pytest.warns(UserWarning, match="No parallelize_plan is provided"):
        parallelize_module(nn.Linear(8, 8), MESH["tp"])


def test_tensors_on_a_mesh() -> None:
    t = distribute_tensor(torch.arange(8.0), MESH, [Shard(0), Replicate()])
    assert t.placements == (Shard(0), Replicate()) and t.device_mesh == MESH
    assert isinstance(t, DTensor) and not isinstance(torch.ones(8), DTensor)
    assert hasattr(t, "full_tensor") and not hasattr(torch.ones(8), "full_tensor")
    assert t.to_local().tolist() == t.full_tensor().tolist() == torch.arange(8.0).tolist()
    assert t.full_tensor().jax().sharding.num_devices == 1
    w = distribute_tensor(nn.Parameter(torch.ones(8)), MESH, [Shard(0), Shard(0)])
    assert w.is_leaf and w.requires_grad and DTensor.full_tensor(w.detach()).sum() == 8
    loss = (t * w).sum()
    assert isinstance(loss, DTensor)
    loss.full_tensor().backward()
    assert w.grad.full_tensor().tolist() == torch.arange(8.0).tolist()
    again = w.redistribute(placements=[Replicate(), Shard(0)])
    assert again.placements == (Replicate(), Shard(0)) and again.requires_grad
    (again * 3).sum().backward()
    assert w.grad.full_tensor().tolist() == (torch.arange(8.0) + 3).tolist()
    local = DTensor.from_local(torch.ones(4, 2), MESH["dp"], [Shard(0)])
    assert local.shape == (4, 2) and local.placements == (Shard(0), Replicate())
    assert repr([Shard(0), Replicate(), Partial()]) == "[Shard(dim=0), Replicate(), Partial(sum)]"
    assert f"{Shard(1)} {Replicate()} {Partial()}" == "S(1) R P(sum)"


def make_model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.LayerNorm(16), nn.Linear(16, 3)
    )


def train(model: Any, device: str | None = None) -> tuple[list[float], int]:
    """Train a model; return its losses, and how many programs were compiled."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.explain(clear=True)
    losses = []
    for x, y in BATCHES:
        xs, ys = torch.from_numpy(x), torch.from_numpy(y)
        if device is not None:
            xs, ys = xs.to(device), ys.to(device)
        loss = nn.functional.cross_entropy(model(xs), ys)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, torch.explain().compiles


@cache
def alone() -> tuple[list[float], int]:
    return train(make_model())


def by_layer(model: Any) -> Any:
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    return fully_shard(model)


def by_columns(model: Any) -> Any:
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel(), "3": SequenceParallel(sequence_dim=0)}
    return parallelize_module(model, MESH["tp"], plan)


WAYS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "DataParallel": (nn.DataParallel, (Replicate(),)),
    "DistributedDataParallel": (nn.parallel.DistributedDataParallel, (Replicate(),)),
    "fully_shard": (by_layer, (Shard(0),)),
    "hybrid": (lambda m: fully_shard(m, mesh=MESH), (Replicate(), Shard(0))),
    "wrapper": (lambda m: FSDP(m, device_mesh=MESH["dp"]), (Shard(0), Replicate())),
    "tensor parallel": (by_columns, (Replicate(), Shard(0))),
    "both": (lambda m: fully_shard(by_columns(m), mesh=MESH["dp"]), (Shard(0), Shard(0))),
}


@pytest.mark.parametrize("way", WAYS)
def test_training_is_that_of_one_device(group: None, way: str) -> None:
    wrap, placements = WAYS[way]
    model = make_model()
    weight = model[0].weight
    wrapped = wrap(model)
    losses, compiles = train(wrapped)
    np.testing.assert_allclose(losses, alone()[0], rtol=1e-5)
    assert compiles <= alone()[1]  # an earlier test has compiled it, if not
    assert weight is model[0].weight and weight.placements == placements
    held = [s.data.nbytes for s in weight.detach().jax().addressable_shards]
    parts = {Shard(0): {"dp": 4, "tp": 2, "batch": 8}, Replicate(): {}}
    axes = weight.device_mesh.axes
    split = np.prod([parts[p].get(a, 1) for p, a in zip(placements, axes, strict=True)])
    assert held == [weight.numel() * 4 // split] * 8
    assert isinstance(wrapped, FSDPModule) == (way in ("fully_shard", "hybrid", "both"))


@pytest.mark.parametrize("way", ["DataParallel", "fully_shard"])
def test_batches_on_one_device_join_the_mesh(way: str) -> None:
    losses, compiles = train(WAYS[way][0](make_model()), "cpu:0")
    np.testing.assert_allclose(losses, alone()[0], rtol=1e-5)
    assert compiles <= alone()[1]  # an earlier test has compiled it, if not


def test_names_and_files_of_split_modules() -> None:
    model, wrapped = make_model(), FSDP(make_model())
    assert list(wrapped.state_dict()) == list(model.state_dict())
    assert [n for n, _ in wrapped.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert wrapped[0].in_features == 8 and wrapped.module is wrapped._fsdp_wrapped_module
    with FSDP.summon_full_params(wrapped), FSDP.state_dict_type(wrapped, None), wrapped.no_sync():
        file = io.BytesIO()
        torch.save(wrapped.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        model[0].weight.zero_()
    model.load_state_dict(torch.load(file))
    assert not isinstance(model[0].weight, DTensor)
    assert torch.equal(model[0].weight, wrapped[0].weight.full_tensor())
    before = wrapped[0].weight.placements
    wrapped.load_state_dict({n: t * 0 for n, t in model.state_dict().items()})
    assert wrapped[0].weight.placements == before and not wrapped[0].weight.any()
    wrapped(torch.ones(8, 8)).sum().backward()
    assert wrapped.clip_grad_norm_(1.0) > 0


def test_placement_functions_and_ignored_parameters() -> None:
    model = make_model()
    fully_shard(
        model, shard_placement_fn=lambda p: Shard(1) if p.ndim == 2 and p.shape[1] == 32 else None,
        ignored_params={model[0].weight},
    )  # fmt: skip
    assert model[2].weight.placements == (Shard(1),) and not isinstance(model[0].weight, DTensor)
    assert model[4].bias.placements == (Replicate(),)  # no device divides it
    with pytest.raises(AssertionError, match="FSDP cannot be applied twice to"):
        fully_shard(model)


def test_a_gradient_that_other_processes_alone_have_is_as_theirs(group: None) -> None:
    model = fully_shard(nn.Linear(8, 2, bias=False, dtype=torch.float64))
    average_gradients([model.weight], dist.group.WORLD)
    assert model.weight.grad.dtype == torch.float64 and not model.weight.grad.any()
    assert model.weight.grad.placements == model.weight.placements == (Shard(1),)


def test_layouts_of_inputs_and_outputs() -> None:
    layer = nn.Identity()
    wanted = {"desired_input_layouts": Shard(0)}
    parallelize_module(layer, MESH["tp"], PrepareModuleInput(input_layouts=Replicate(), **wanted))
    assert layer(torch.ones(8, 2)).jax().sharding.spec == P("tp")
    layer = nn.Identity()
    style = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Shard(1))
    parallelize_module(layer, MESH["tp"], style)
    assert layer(torch.ones(8, 2)).jax().sharding.spec == P(None, "tp")
    placed: list[str] = []

    def place(name: str, module: Any, mesh: Any) -> None:
        placed.append(name)

    found = distribute_module(
        nn.Sequential(nn.Linear(4, 4)), MESH["dp"], place,
        lambda m, inputs, mesh: (inputs[0] * 2,), lambda m, out, mesh: out * 0,
    )  # fmt: skip
    assert placed == ["", "0"] and found[0].weight.placements == (Replicate(), Replicate())
    assert not found(torch.ones(2, 4)).any()


def test_copies_of_wrapped_modules(group: None) -> None:
    for wrap in (nn.DataParallel, nn.parallel.DistributedDataParallel):
        wrapped = wrap(nn.Linear(3, 2))
        copied = copy.deepcopy(wrapped)
        assert torch.equal(copied(torch.ones(8, 3)), wrapped(torch.ones(8, 3)))
    again = pickle.loads(pickle.dumps(nn.DataParallel(nn.Linear(3, 2))))
    assert again(torch.ones(8, 3)).jax().sharding.num_devices == 8
    two = nn.DataParallel(nn.Linear(3, 2), device_ids=[0, 1])
    assert two(torch.ones(8, 3)).jax().sharding.num_devices == 2
    assert two(torch.ones(3, 3)).shape == (3, 2)  # they do not divide it
    x = torch.ones(8, 3, requires_grad=True)
    two({"a": [x]}["a"][0] * 2).sum().backward()
    assert x.grad is not None and x.grad.shape == (8, 3) and jax.device_count() == 8
