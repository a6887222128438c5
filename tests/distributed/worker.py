"""One of two processes that `test_processes.py` starts, each with four devices of its own.

Arguments: the process's number, the port where they meet, and the file for what was found.
"""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import leafax
import leafax.distributed as dist
from leafax import nn
from leafax.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from leafax.distributed.fsdp import fully_shard
from leafax.distributed.nn import functional as dist_nn
from leafax.distributed.sharding import shard_batch
from leafax.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

BATCHES = [
    (draw.normal(size=(16, 6)).astype(np.float32), draw.integers(0, 3, 16))
    for draw in map(np.random.default_rng, range(5))
]


def make_model(batch_norm: bool = False) -> Any:
    leafax.manual_seed(0)
    norm = nn.BatchNorm1d(16) if batch_norm else nn.LayerNorm(16)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), norm, nn.Linear(16, 8), nn.Linear(8, 3))


def own_part(x: np.ndarray) -> Any:
    """Return this process's part of a batch."""
    size = len(x) // dist.get_world_size()
    return leafax.from_numpy(x[dist.get_rank() * size :][:size].copy())


def train(model: Any, batch_of: Callable[[np.ndarray], Any]) -> list[float]:
    """Train a model; return the loss of each step over the batch of this process."""
    optimizer = leafax.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for x, y in BATCHES:
        loss = nn.functional.cross_entropy(model(batch_of(x)), batch_of(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def collectives() -> dict[str, Any]:
    """Call each collective; process `r` gives what depends on `r`."""
    r, ops = dist.get_rank(), dist.ReduceOp
    found: dict[str, Any] = {"rank": [r, dist.get_world_size(), dist.is_gloo_available()]}
    for op in (ops.SUM, ops.AVG, ops.PRODUCT, ops.MIN, ops.MAX):
        x = leafax.arange(3.0) + r
        dist.all_reduce(x, op)
        found[op.name] = x.tolist()
    for op in (ops.BAND, ops.BOR, ops.BXOR, ops.MAX):
        n = leafax.arange(3) + r
        work = dist.all_reduce(n, op, async_op=True)
        assert work is not None and work.wait()
        found[f"integers {op.name}"] = n.tolist()
    whole = leafax.zeros(4, dtype=leafax.float64)
    dist.all_gather_into_tensor(whole, leafax.arange(2.0, dtype=leafax.float64) + 10 * r)
    out = [leafax.zeros(2) for _ in range(6)]
    dist.reduce_scatter_tensor(out[0], leafax.arange(4.0) + r)
    dist.reduce_scatter(out[1], [leafax.ones(2), leafax.ones(2) * (5 + r)])
    dist.scatter(out[2], [leafax.ones(2), leafax.ones(2) * 2] if r == 0 else None, src=0)
    dist.all_to_all_single(out[3], leafax.tensor([10.0 * r, 10.0 * r + 1]))
    dist.reduce(out[4].add_(r + 1), dst=1)
    dist.broadcast(out[5].add_(r), src=1)
    lists = [[leafax.zeros(1), leafax.zeros(1)] for _ in range(3)]
    dist.all_gather(lists[0], leafax.tensor([r + 0.5]))
    dist.gather(leafax.tensor([r + 0.5]), lists[1] if r == 1 else None, dst=1)
    dist.all_to_all(lists[2], [leafax.tensor([10.0 * r]), leafax.tensor([10.0 * r + 1])])
    found["written"] = [t.tolist() for t in (whole, *out, *(t for ts in lists for t in ts))]
    objects: list[list[Any]] = [[None, None], [None, None], [r, {"r": r}], [None]]
    dist.all_gather_object(objects[0], "x" * 300 * (r + 1))
    dist.gather_object({"r": r}, objects[1] if r == 0 else None, dst=0)
    dist.broadcast_object_list(objects[2], src=1)
    dist.scatter_object_list(objects[3], ["a", "b"] if r == 0 else None, src=0)
    found["objects"] = [[len(x) for x in objects[0]], *objects[1:]]
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    return found


def point_to_point() -> list[Any]:
    """Send from process 0 to 1, and an answer in bfloat16 back; a rank alone computes between."""
    r = dist.get_rank()
    if r == 0:
        dist.send(leafax.arange(3), 1)
        x = leafax.zeros(2, dtype=leafax.bfloat16)
        return [dist.recv(x, 1), x.tolist()]
    n = leafax.zeros(3, dtype=leafax.long)
    sender = dist.recv(n, 0)
    total = (n * 2).sum().item()  # a program that only this process runs
    work = dist.isend(leafax.full((2,), 1.5, dtype=leafax.bfloat16), 0)
    assert work is not None and work.wait()
    return [sender, n.tolist(), total]


def late_waits() -> list[float]:
    """Wait for what process 0 sent last before what it sent first."""
    tensors = [leafax.zeros(1), leafax.zeros(1)]
    if dist.get_rank() == 0:
        for t, number in zip(tensors, (1.0, 2.0), strict=True):
            dist.send(t + number, 1)
    else:
        works = [dist.irecv(t, 0) for t in tensors]
        for work in reversed(works):
            assert work is not None and work.wait()
    return [t.item() for t in tensors]


def groups() -> list[Any]:
    """Reduce within a group of one process, and ask a group for its ranks."""
    second = dist.new_group([1])
    x = leafax.ones(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.all_reduce(x, group=second)
    both = dist.new_group([0, 1])
    return [
        dist.get_rank(second), dist.get_world_size(second), [str(w.message) for w in caught],
        dist.get_process_group_ranks(both), dist.get_rank(both),
    ]  # fmt: skip


def gradients_of_collectives() -> Any:
    z, r = leafax.ones(2, requires_grad=True), dist.get_rank()
    (dist_nn.all_reduce(z * (r + 1)) * (r + 1)).sum().backward()
    (leafax.stack(dist_nn.all_gather(z)).prod(0) * (r + 1)).sum().backward()
    return z.grad.tolist()  # type: ignore[union-attr]


def data_parallel() -> dict[str, Any]:
    """Train by DistributedDataParallel, and without as if on one device."""
    alone = train(make_model(), leafax.from_numpy)
    model = make_model()
    with leafax.no_grad():
        for p in model.parameters():
            p.add_(dist.get_rank())  # the first process's parameters count
    wrapped = nn.parallel.DistributedDataParallel(model)
    compiled = len(leafax.compilations()) if hasattr(leafax, "compilations") else 0
    losses = train(wrapped, own_part)
    mean = leafax.tensor(losses)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    weights = [p.detach().numpy() for p in wrapped.parameters()]
    gathered: list[Any] = [None, None]
    dist.all_gather_object(gathered, weights)
    same = all((a == b).all() for a, b in zip(*gathered, strict=True))
    return {
        "alone": alone, "mean": mean.tolist(), "same": same, "compiled": compiled,
        "keys": sorted(wrapped.state_dict())[:2], "devices": _devices(model[0].weight),
    }  # fmt: skip


def without_averages() -> dict[str, Any]:
    """Accumulate two batches, the first within `no_sync`."""
    model = nn.Linear(2, 1, bias=False)
    with leafax.no_grad():
        model.weight.fill_(1.0)
    wrapped = nn.parallel.DistributedDataParallel(model)
    r, grads = dist.get_rank(), []
    with wrapped.no_sync():
        wrapped(leafax.full((4, 2), r + 1.0)).mean().backward()
    grads.append(model.weight.grad.tolist())  # type: ignore[union-attr]
    wrapped(leafax.full((4, 2), r + 1.0)).mean().backward()
    grads.append(model.weight.grad.tolist())  # type: ignore[union-attr]
    return {"grads": grads}


class Branches(nn.Module):
    """Two layers; process `r` uses those that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 1, bias=False) for _ in range(3))

    def forward(self, x: Any, used: list[int]) -> Any:
        return sum(self.layers[i](x) for i in used)


def unused_parameters() -> dict[str, Any]:
    """Use other layers in each process, and layer 2 in none."""
    r, x = dist.get_rank(), leafax.ones(4, 2)
    wrapped = nn.parallel.DistributedDataParallel(Branches(), find_unused_parameters=True)
    wrapped(x, [0] if r == 0 else [0, 1]).mean().backward()
    grads = [None if p.grad is None else p.grad.tolist() for p in wrapped.parameters()]
    strict = nn.parallel.DistributedDataParallel(Branches())
    strict(x, [0]).mean().backward()
    try:
        strict(x, [0])
        said = ""
    except RuntimeError as error:
        said = str(error)
    return {"grads": grads, "said": said}


def buffers_and_shapes() -> dict[str, Any]:
    """Take buffers over from the first process; wrap modules that differ."""
    wrapped = nn.parallel.DistributedDataParallel(make_model(batch_norm=True))
    for x, _ in BATCHES[:2]:
        wrapped(own_part(x))
    wrapped.eval()(own_part(BATCHES[0][0]))
    mean = dict(wrapped.module.named_buffers())["2.running_mean"]
    try:
        nn.parallel.DistributedDataParallel(nn.Linear(2, 1 + dist.get_rank()))
        said = ""
    except RuntimeError as error:
        said = str(error)
    return {"mean": mean.tolist(), "said": said}


def synchronized_norms() -> dict[str, Any]:
    """Standardize a batch that the processes share, beside all of it in one."""
    found: dict[str, Any] = {}
    x = np.random.default_rng(3).normal(2.0, 3.0, (8, 2, 3))
    for momentum in (0.1, None):
        results = []
        for make, batch_of in ((nn.BatchNorm1d, leafax.from_numpy), (nn.SyncBatchNorm, own_part)):
            layer, taken = make(2, momentum=momentum, dtype=leafax.float64), batch_of(x)
            taken.requires_grad_()
            for scale in (1.0, 2.0):  # the statistics move twice
                out = layer(taken * scale)
            (out * leafax.arange(3.0)).pow(3).sum().backward()
            weight, grads = layer.weight.grad, [taken.grad]
            if make is nn.SyncBatchNorm:
                dist.all_reduce(weight)
                parts = [leafax.zeros_like(t) for t in (out, out, out, out)]
                dist.all_gather(parts[:2], out.detach())
                dist.all_gather(parts[2:], taken.grad)
                out, grads = leafax.cat(parts[:2]), [leafax.cat(parts[2:])]
            results.append([out, weight, *grads, *layer.buffers()])
        gaps = [(a - b).abs().max().item() for a, b in zip(*results, strict=True)]
        found[str(momentum)] = max(gaps)
    return found


def fully_sharded() -> dict[str, Any]:
    """Train with parameters over this process's devices, and gradients averaged."""
    model = fully_shard(make_model())
    mean = leafax.tensor(train(model, own_part))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    weight = model[0].weight
    parts = [t.jax().addressable_shards[0].data.shape for t in (weight.detach(), weight.grad)]
    return {"mean": mean.tolist(), "devices": _devices(weight), "parts": parts}


def over_all_devices() -> dict[str, Any]:
    """Train with parameters over the devices of both processes, on joined batches."""
    mesh = dist.init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
    model = make_model()
    fully_shard(model, mesh=mesh["dp"])
    try:
        model(own_part(BATCHES[0][0]))
        said = ""
    except ValueError as error:
        said = str(error)
    losses = train(model, lambda x: shard_batch(mesh.jax, P("dp"), own_part(x)))
    weight = model[0].weight
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    saved = get_model_state_dict(model, options=whole)
    t = distribute_tensor(leafax.arange(8.0) + dist.get_rank(), mesh, [Shard(0), Replicate()])
    joined = DTensor.from_local(leafax.ones(2) * dist.get_rank(), mesh, [Shard(0), Replicate()])
    return {
        "losses": losses, "devices": _devices(weight), "said": said,
        "placements": repr(weight.placements), "full": weight.full_tensor().sum().item(),
        "tensor": [t.full_tensor().tolist(), t.to_local().tolist()],
        "saved": {name: list(value.numpy().shape) for name, value in saved.items()},
        "joined": joined.full_tensor().tolist(), "place": mesh.get_coordinate(),
        "group": mesh.get_group("dp").size(), "own": mesh.get_group("tp").size(),
        "kept": mesh.get_group("tp") is mesh["tp"].get_group(),
    }  # fmt: skip


def death() -> dict[str, Any]:
    """Reduce with a process that has gone."""
    if dist.get_rank() == 1:
        return {}
    try:
        for _ in range(100):
            dist.all_reduce(leafax.ones(3))
    except dist.DistBackendError as error:
        return {"said": str(error)}
    return {"said": "nothing"}


def _devices(t: Any) -> int:
    return len(t.detach().jax().sharding.device_set)


SCENES = (
    collectives, point_to_point, late_waits, groups, gradients_of_collectives, data_parallel,
    without_averages, unused_parameters, buffers_and_shapes, synchronized_norms,
    fully_sharded, over_all_devices, death,
)  # fmt: skip


def main(number: str, port: str, path: str) -> None:
    cuda = leafax.cuda.is_available()  # scripts ask first; JAX has made its devices then
    jax.config.update("jax_default_device", jax.devices()[1])  # as `cuda.set_device` does
    os.environ.update(RANK=number, WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=port)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(seconds=30))
    assert jax.local_device_count() == 4 and jax.device_count() == 8
    assert jax.config.jax_default_device is None  # type: ignore[attr-defined]
    found: dict[str, Any] = {}
    for scene in SCENES:
        try:
            found[scene.__name__] = scene()
        except Exception:
            found[scene.__name__] = {"failed": traceback.format_exc()}
            break
    with open(path, "w") as file:
        json.dump(found, file)
    os._exit(0)  # without a word to the other process


if __name__ == "__main__":
    main(*sys.argv[1:])
