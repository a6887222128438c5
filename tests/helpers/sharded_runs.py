"""Runs whose arrays are sharded, saved and restored; `test_sharded_runs.py` reads what it prints.

python tests/helpers/sharded_runs.py DIRECTORY

It needs eight devices, and so a process of its own, with
XLA_FLAGS=--xla_force_host_platform_device_count=8
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leafax as torch
import leafax.distributed.checkpoint
from leafax import nn
from leafax.adapters import orbax

X = np.random.default_rng(0).normal(size=(8, 16)).astype("float32")
ROWS, COLUMNS = {"0.weight": P("d"), "2.weight": P(None, "d")}, {"0.weight": P("y", "x")}


def mesh_of(**axes: int) -> Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


class Training:
    """A model, some of it sharded, its optimizer, and a count too large for 32 bits."""

    def __init__(self, directory: str, mesh: Mesh | None, specs: Mapping[str, Any]) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))
        self.model.register_buffer("seen", torch.tensor([2**40]))
        if mesh is not None:
            for name, p in self.model.named_parameters():
                put = jax.device_put(p.detach().jax(), NamedSharding(mesh, specs.get(name, P())))
                p.data = torch.as_tensor(put)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.run = orbax.Run(directory, model=self.model, optimizer=self.optimizer)

    def steps(self, n: int) -> list[float]:
        losses = []
        for _ in range(n):
            self.model.seen += 1
            loss = (self.model(torch.from_numpy(X)) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses

    def arrays(self) -> dict[str, Any]:
        found = {name: t.jax() for name, t in self.model.state_dict().items()}
        for name, p in self.model.named_parameters():
            state = self.optimizer.state.get(p, {})
            found |= {f"{name} {k}": v.jax() for k, v in state.items()}
        return found

    def values(self) -> dict[str, Any]:
        return {name: np.array(a) for name, a in self.arrays().items()}


def same(mine: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert mine.keys() == wanted.keys()
    for name, value in wanted.items():
        assert mine[name].dtype == value.dtype, name
        np.testing.assert_array_equal(mine[name], value, err_msg=name)


def goes_on_elsewhere(directory: str, mesh: Mesh | None, specs: Mapping[str, Any]) -> None:
    """Restore what eight devices saved: values, placement and the losses that follow."""
    first = Training(directory, mesh_of(d=8), ROWS)
    first.steps(3)
    wanted = first.values()
    first.run.save(3)
    losses = first.steps(3)
    torch.manual_seed(1)
    other = Training(directory, mesh, specs)
    homes = {name: p.detach().jax().sharding for name, p in other.model.named_parameters()}
    assert other.run.restore() == 3
    same(other.values(), wanted)
    found = {name: a.sharding for name, a in other.arrays().items()}
    for name, home in homes.items():
        assert found[name].is_equivalent_to(home, wanted[name].ndim), (name, found[name], home)
        assert found[f"{name} exp_avg"].is_equivalent_to(home, wanted[name].ndim), name
    np.testing.assert_allclose(other.steps(3), losses, rtol=1e-5)


def to_another_mesh(directory: str) -> None:
    goes_on_elsewhere(directory, mesh_of(x=2, y=4), COLUMNS)


def to_one_device(directory: str) -> None:
    goes_on_elsewhere(directory, None, {})


def to_fewer_devices(directory: str) -> None:
    goes_on_elsewhere(directory, Mesh(np.array(jax.devices()[4:6]), "d"), ROWS)


def from_one_device(directory: str) -> None:
    first = Training(directory, None, {})
    first.steps(2)
    first.run.save(2)
    other = Training(directory, mesh_of(d=8), ROWS)
    other.run.restore()
    same(other.values(), first.values())
    assert other.optimizer.state[other.model[0].weight]["exp_avg"].jax().sharding.spec == P("d")
    np.testing.assert_allclose(other.steps(3), first.steps(3), rtol=1e-5)


def while_it_trains(directory: str) -> None:
    """The buffers that are being written are donated to the steps that follow."""
    training = Training(directory, mesh_of(d=8), ROWS)
    training.steps(3)
    torch.explain(clear=True)
    wanted, old = training.values(), training.model[0].weight.jax()
    pointer = [s.data.unsafe_buffer_pointer() for s in old.addressable_shards]
    del old
    training.run.save(3, wait=False)
    training.steps(3)
    new = training.model[0].weight.jax()
    assert [s.data.unsafe_buffer_pointer() for s in new.addressable_shards] == pointer
    assert torch.explain().compiles == 0
    training.run.wait()
    other = Training(directory, mesh_of(x=2, y=4), COLUMNS)
    other.run.restore()
    same(other.values(), wanted)


def by_state_dicts(directory: str) -> None:
    """PyTorch's `distributed.checkpoint`, from one mesh to another."""
    dcp, first = torch.distributed.checkpoint, Training(directory, mesh_of(d=8), ROWS)
    first.steps(2)
    wanted = {name: np.array(t.jax()) for name, t in first.model.state_dict().items()}
    done = dcp.async_save({"model": first.model}, checkpoint_id=f"{directory}/dcp")
    first.steps(2)
    done.result(timeout=60)
    other = Training(f"{directory}/other", mesh_of(x=2, y=4), COLUMNS)
    dcp.load({"model": other.model}, checkpoint_id=f"{directory}/dcp")
    found = {name: t.jax() for name, t in other.model.state_dict().items()}
    same({name: np.array(a) for name, a in found.items()}, wanted)
    assert found["0.weight"].sharding.spec == P("y", "x")


CHECKS: tuple[Callable[[str], None], ...] = (
    to_another_mesh, to_one_device, to_fewer_devices, from_one_device, while_it_trains,
    by_state_dicts,
)  # fmt: skip


def main(directory: str) -> None:
    for check in CHECKS:
        try:
            check(f"{directory}/{check.__name__}")
            error = ""
        except Exception:
            error = traceback.format_exc()
        print(json.dumps([check.__name__, error]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
