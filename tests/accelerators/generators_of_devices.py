"""Tests of generators on four devices; `test_generators.py` runs them in a process of their own."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from flax import nnx

import leafax as torch
import leafax.nn.functional as F
from leafax import nn
from leafax.adapters.nnx import Model
from leafax.utils.checkpoint import checkpoint, get_device_states, set_device_states


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(5)


def state(where: str) -> list[int]:
    return torch.random.generators_by_device()[where].get_state().tolist()


def moved_by(draw: Callable[[], Any]) -> list[str]:
    """List the devices whose default generators a draw moves on."""
    before = {where: state(where) for where in torch.random.generators_by_device()}
    draw()
    return [where for where, then in before.items() if state(where) != then]


def ones(where: str | None, *shape: int) -> Any:
    return torch.ones(*(shape or (8,)), device=where)


DRAWS: dict[str, Callable[[str | None], Any]] = {
    "rand": lambda d: torch.rand(2, device=d),
    "randint": lambda d: torch.randint(9, (2,), device=d),
    "randperm": lambda d: torch.randperm(4, device=d),
    "normal": lambda d: torch.normal(0.0, 1.0, (2,), device=d),
    "normal of tensors": lambda d: torch.normal(ones(d), 1.0),
    "like": lambda d: torch.randn_like(ones(d)),
    "out": lambda d: torch.rand(8, out=ones(d)),
    "bernoulli": lambda d: torch.bernoulli(input=ones(d) / 2),
    "multinomial": lambda d: ones(d).multinomial(2),
    "normal_": lambda d: ones(d).normal_(),
    "uniform_": lambda d: ones(d).uniform_(),
    "random_": lambda d: ones(d).random_(7),
    "init": lambda d: nn.init.xavier_uniform_(ones(d, 2, 2)),
    "layer": lambda d: nn.Linear(2, 2, device=d).weight,
    "dropout": lambda d: F.dropout(ones(d)),
    "dropout_": lambda d: F.dropout(ones(d), inplace=True),
    "channels": lambda d: F.dropout2d(ones(d, 1, 2, 2, 2)),
    "rrelu": lambda d: F.rrelu(ones(d), training=True),
    "gumbel": lambda d: F.gumbel_softmax(ones(d)),
    "attention": lambda d: F.scaled_dot_product_attention(*[ones(d, 1, 2, 4)] * 3, dropout_p=0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_move_the_stream_of_their_device_alone(name: str) -> None:
    assert moved_by(lambda: DRAWS[name]("cpu:2")) == ["cpu:2"]
    assert moved_by(lambda: DRAWS[name]("cpu")) == moved_by(lambda: DRAWS[name](None)) == ["cpu"]


def test_seeds_reach_all_devices() -> None:
    first = [torch.randn(3, device=d).tolist() for d in ("cpu", "cpu:1", "cpu:2")]
    assert first[1] == first[2] != first[0]  # noise of a GPU is no copy of the CPU's data
    torch.manual_seed(5)
    assert torch.randn(3).tolist() == first[0]
    assert torch.randn(3, device="cpu:3").tolist() == first[1]  # which drew nothing before
    assert torch.Generator("cpu:1").manual_seed(5).initial_seed() == torch.initial_seed() == 5
    drawn = torch.randn(3, generator=torch.Generator("cpu:2").manual_seed(5))
    assert drawn.tolist() == first[1] and torch.Generator("cpu:2").device == torch.device("cpu:2")
    torch.default_generator.manual_seed(9)
    assert {g.initial_seed() for g in torch.random.generators_by_device().values()} == {5, 9}
    seeds = {torch.seed()}
    assert seeds == {g.initial_seed() for g in torch.random.generators_by_device().values()}


def test_data_on_no_device() -> None:
    def draw() -> None:
        F.dropout(ones(None) + torch.rand(8))

    with torch.device("cpu:1"):
        assert moved_by(draw) == ["cpu:1"]
    torch.set_default_device("cpu:3")
    assert moved_by(draw) == ["cpu:3"]
    torch.set_default_device(None)
    assert moved_by(draw) == ["cpu"]
    assert moved_by(lambda: torch.rand(2, device="meta").sum()) == []
    assert torch.random.generator_of(ones("cpu:1")).device == torch.device("cpu:1")
    assert torch.random.generator_of(None) is torch.default_generator
    with pytest.raises(TypeError, match="^generator_of takes a tensor or None, and not str$"):
        torch.random.generator_of("cpu:1")


def test_forks() -> None:
    for fork, stay in (
        ({}, []), ({"devices": ["cpu:1", "cpu:2"]}, ["cpu:3"]),
        ({"devices": [], "device_type": "cuda"}, ["cpu:1", "cpu:2", "cpu:3"]),
        ({"devices": [3], "device_type": "cpu"}, ["cpu:1", "cpu:2"]),
        ({"enabled": False}, ["cpu", "cpu:1", "cpu:2", "cpu:3"]),
    ):  # fmt: skip

        def draw(fork: Any = fork) -> None:
            with torch.random.fork_rng(**fork):
                for d in ("cpu", "cpu:1", "cpu:2", "cpu:3"):
                    torch.rand(2, device=d)

        assert moved_by(draw) == stay


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_the_same_again(reentrant: bool) -> None:
    def drops(x: Any) -> Any:
        return F.dropout(F.dropout(x) * torch.rand(64, device="cpu:3").to("cpu:2"))

    x = ones("cpu:2", 64).requires_grad_()
    y = checkpoint(drops, x, use_reentrant=reentrant)
    after = state("cpu:2"), state("cpu:3")
    y.sum().backward()
    assert x.grad.tolist() == y.tolist() and y.count_nonzero() > 0
    assert (state("cpu:2"), state("cpu:3")) == after


def test_states_of_devices_by_number() -> None:
    x = torch.rand(2, device="cpu:2")
    devices, states = get_device_states(x, [ones("cpu"), ones(None)], {"mask": ones("cpu:1")})
    assert devices == [2, 1] and states[0].tolist() == state("cpu:2")
    assert states[0].device == torch.device("cpu") and states[0].dtype == torch.uint8
    first = [torch.rand(2, device=f"cpu:{d}").tolist() for d in devices]
    set_device_states(devices, states)
    assert [torch.rand(2, device=f"cpu:{d}").tolist() for d in devices] == first
    cpu = torch.get_rng_state()
    drawn = torch.rand(2).tolist()
    torch.set_rng_state(cpu)
    assert torch.rand(2).tolist() == drawn


def test_states_are_saved() -> None:
    generator, file = torch.random.generators_by_device()["cpu:1"], io.BytesIO()
    torch.rand(2, device="cpu:1")
    torch.save(generator.get_state(), file)
    file.seek(0)
    drawn = torch.rand(2, device="cpu:1").tolist()
    generator.set_state(torch.load(file))
    assert torch.rand(2, device="cpu:1").tolist() == drawn


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_with_dropout_is_one_program(compiled: bool) -> None:
    model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(), nn.Linear(16, 1)).to("cpu:1")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(4, 6, device="cpu:1")

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean() + torch.rand((), device="cpu:1")
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = torch.compile(step) if compiled else step
    torch.explain(clear=True)
    losses = [step().item() for _ in range(8)]
    assert len(set(losses)) == 8
    steps = list(torch.explain())[-3:]
    assert [run.how for run in steps] == ["cached"] * 3
    reason = "leafax.compile" if compiled else "optimizer.step()"  # replayed, or recorded
    assert [run.reason for run in steps] == [reason] * 3


def test_models_of_flax_draw_where_they_are() -> None:
    class Drops(nnx.Module):
        def __init__(self) -> None:
            self.scale = nnx.Param(1.0)
            self.drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

        def __call__(self, x: Any) -> Any:
            return self.drop(x * self.scale[...])

    model = Model(Drops()).to("cpu:2")
    assert moved_by(lambda: model(ones("cpu:2"))) == ["cpu:2"]
