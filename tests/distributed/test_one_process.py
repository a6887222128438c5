"""A process group of one process, beside PyTorch's: values, and what misuse is told."""

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax
import pytest
import torch
import torch.distributed

import leafax
import leafax.distributed as dist
import leafax.distributed.nn as dist_nn
from leafax import nn
from leafax._core.jax_devices import jax_device
from leafax._core.processes.startup import own_device

BOTH = (leafax, torch)


@pytest.fixture
def groups(tmp_path: Any) -> Iterator[None]:
    """Make the default group of one process in both libraries."""
    dist.init_process_group("gloo", world_size=1, rank=0)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", world_size=1, rank=0
    )
    yield
    torch.distributed.destroy_process_group()
    dist.destroy_process_group()


def test_before_there_is_a_group() -> None:
    said = (
        "Default process group has not been initialized, please make sure to call "
        "init_process_group."
    )
    for call in (dist.get_rank, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == said
    assert not dist.is_available() and dist.group.WORLD is None


def test_a_launcher_makes_it_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert dist.is_available() and not dist.is_initialized()


@pytest.mark.parametrize("lacks", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])
def test_the_environment_lacks_a_variable(monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    for name, value in (
        ("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "1"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(lacks)
    messages = []
    for library in BOTH:
        with pytest.raises(ValueError) as caught:
            library.distributed.init_process_group("gloo")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_several_processes_come_before_the_first_tensor() -> None:
    held = leafax.ones(3).jax()
    with pytest.raises(RuntimeError, match="comes too late: JAX runs as a single process, and"):
        dist.init_process_group(init_method="tcp://localhost:1", world_size=2, rank=0)
    assert not dist.is_initialized() and held.shape == (3,)
    with pytest.raises(ValueError, match="tcp:// rendezvous: rank parameter missing"):
        dist.init_process_group(init_method="tcp://localhost:1", world_size=2)


def one_by_one(library: Any) -> list[Any]:
    """Call each collective once; return what it gave and wrote."""
    d, x = library.distributed, library.arange(3.0)
    found: list[Any] = [d.get_rank(), d.get_world_size(), d.get_backend()]
    found += [d.is_available(), d.is_initialized(), d.get_process_group_ranks(None)]
    found += [d.all_reduce(x), d.all_reduce(x, async_op=True).wait(), d.barrier()]
    lists = [[library.zeros(3)] for _ in range(3)]
    d.all_gather(lists[0], x)
    d.gather(x, lists[1], dst=0)
    d.all_to_all(lists[2], [x])
    out = [library.zeros(3) for _ in range(4)]
    d.scatter(out[0], [x], src=0)
    d.reduce_scatter(out[1], [x])
    d.all_to_all_single(out[2], x)
    d.reduce_scatter_tensor(out[3], x)
    d.broadcast(x, 0)
    d.reduce(x, 0, op=d.ReduceOp.MAX)
    found += [t.tolist() for t in (x, *out, *(t for ts in lists for t in ts))]
    objects: list[list[Any]] = [[None], [None], ["b"], [None]]
    d.all_gather_object(objects[0], "a")
    d.gather_object({"a": 1}, objects[1], dst=0)
    d.broadcast_object_list(objects[2], src=0)
    d.scatter_object_list(objects[3], [4], src=0)
    own = d.new_group([0])
    found += [objects, d.get_rank(own), d.get_global_rank(own, 0), d.get_group_rank(own, 0)]
    return found


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_collectives_of_one_process_are_pytorchs(groups: None) -> None:
    assert one_by_one(leafax) == one_by_one(torch)


MISUSES = {
    "not a tensor": lambda d, x: d.all_reduce([1]),
    "not a list": lambda d, x: d.all_gather(x, x),
    "no tensors": lambda d, x: d.all_gather([1], x),
    "no scatter list": lambda d, x: d.scatter(x, None, src=0),
    "no gather list": lambda d, x: d.gather(x, None, dst=0),
    "to itself": lambda d, x: d.send(x, 0),
    "both ranks": lambda d, x: d.broadcast(x, src=0, group_src=0),
    "group too large": lambda d, x: d.new_group([0, 1]),
    "second group": lambda d, x: d.init_process_group("gloo", world_size=1, rank=0),
    "no group": lambda d, x: d.get_global_rank(None, 0),
    "no output": lambda d, x: d.scatter_object_list([], [1], src=0),
    "wrong op": lambda d, x: d.P2POp(d.all_reduce, x, 0),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_told_in_pytorchs_words(groups: None, misuse: str) -> None:
    said = []
    for library in BOTH:
        with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
            MISUSES[misuse](library.distributed, library.arange(3.0))
        said.append((caught.type, str(caught.value).replace("leafax", "torch")))
    assert said[0] == said[1]


def test_what_one_process_cannot_do(groups: None) -> None:
    x = leafax.arange(3.0)
    with pytest.raises(RuntimeError, match="broadcast: invalid root rank: 1"):
        dist.broadcast(x, 1)
    with pytest.raises(RuntimeError, match="expected a list of 1 tensors, one for each process"):
        dist.all_gather([x, x], x)
    with pytest.raises(RuntimeError, match="tensor of 3 elements over all processes, got one of"):
        dist.all_gather_into_tensor(leafax.zeros(4), x)


def test_gradients_go_through_collectives(groups: None) -> None:
    x = leafax.ones(3).requires_grad_()
    (dist_nn.all_reduce(x) + dist_nn.all_gather(x)[0] + dist_nn.broadcast(x, 0)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0, 3.0]


def test_groups_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank() == torch.distributed.get_node_local_rank() == 3
    monkeypatch.delenv("LOCAL_RANK")
    assert "LOCAL_RANK" not in os.environ and dist.get_node_local_rank(5) == 5


def test_a_process_that_was_started_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX numbers its only GPU anew, while scripts name it by the process's number."""
    gpu = SimpleNamespace(local_hardware_id=3, platform="gpu")
    monkeypatch.setattr(jax, "local_devices", lambda backend=None: [gpu])
    assert jax_device(leafax.device("cuda", 3)) is gpu
    with pytest.raises(RuntimeError, match="no device of type cuda:2 is available to JAX"):
        jax_device(leafax.device("cuda", 2))
    assert own_device() is None
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert own_device() == [3]


def test_processes_that_jax_knows_need_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    with pytest.raises(RuntimeError, match="as process 0 of 1, and cannot become process 1 of 2"):
        dist.init_process_group(world_size=2, rank=1)
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    monkeypatch.setattr(jax, "process_index", lambda: 2)
    dist.init_process_group()
    try:
        assert (dist.get_rank(), dist.get_world_size()) == (2, 3)
    finally:
        dist.destroy_process_group()


WRAPPINGS = {
    "nothing to train": (lambda t, m: m.requires_grad_(False), {}),
    "a GPU": (lambda t, m: m, {"device_ids": [0]}),
    "two GPUs": (lambda t, m: m, {"device_ids": [0, 1]}),
    "two groups": (lambda t, m: m, {"process_group": 1, "device_mesh": 1}),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_modules_that_cannot_be_wrapped(groups: None, wrapping: str) -> None:
    said = []
    for library in BOTH:
        prepare, options = WRAPPINGS[wrapping]
        with pytest.raises((ValueError, RuntimeError)) as caught:
            module = prepare(library, library.nn.Linear(2, 1))
            library.nn.parallel.DistributedDataParallel(module, **options)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


def test_an_older_name_of_an_argument_warns(groups: None) -> None:
    said = []
    for library in BOTH:
        with pytest.warns(FutureWarning) as caught:
            library.nn.parallel.DistributedDataParallel(
                library.nn.Linear(2, 1), broadcast_buffers=False
            )
        said.append(str(caught[0].message))
    assert said[0] == said[1]


def test_a_wrapped_module_of_one_process(groups: None) -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    with model.no_sync():
        model(leafax.ones(1, 2)).sum().backward()
    assert sorted(model.state_dict()) == ["module.bias", "module.weight"]
