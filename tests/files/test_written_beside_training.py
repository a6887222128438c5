"""Checkpoints that a thread writes while training goes on, and restores that fail."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orbax.checkpoint as ocp
import pytest
from helpers import resumable
from orbax.checkpoint._src.path import atomicity

import leafax as torch
from leafax import nn
from leafax.adapters import freeze, orbax

KINDS = "linen", "module"


def made(kind: str) -> tuple[Any, Any]:
    if kind == "linen":
        parts = resumable.parts()
        return parts["model"], parts["optimizer"]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
    model.register_buffer("seen", torch.tensor(2**40))
    model.register_buffer("none", torch.zeros(0, 3))
    return model, torch.optim.Adam(freeze(model, "0").parameters(), lr=0.01)


def train(model: Any, optimizer: Any, n: int) -> None:
    for _ in range(n):
        optimizer.zero_grad()
        (model(torch.from_numpy(resumable.X)) ** 2).mean().backward()
        optimizer.step()


def values(*parts: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for i, part in enumerate(parts):
        arrays: dict[str, Any] = {}
        orbax.packed_part(str(i), part, arrays)
        found.append({name: np.array(a) for name, a in arrays.items()})
    return found


def same(mine: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    np.testing.assert_equal(mine, wanted)
    return all(a[n].dtype == b[n].dtype for a, b in zip(mine, wanted, strict=True) for n in b)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_what_was_there(kind: str, tmp_path: Path) -> None:
    """The step after `save` writes into the buffers that are being saved, and is compiled."""
    model, optimizer = made(kind)
    run = orbax.Run(tmp_path, model=model, optimizer=optimizer)
    train(model, optimizer, 5)
    torch.synchronize()
    wanted = values(model, optimizer)
    head = list(model.parameters())[-1]
    pointer = head.detach().jax().unsafe_buffer_pointer()
    torch.explain(clear=True)
    run.save(5, wait=False)
    train(model, optimizer, 4)
    torch.synchronize()
    report = torch.explain()
    assert report.compiles == 0 and head.detach().jax().unsafe_buffer_pointer() == pointer
    run.wait()
    assert run.steps() == [5]
    train(model, optimizer, 1)
    other, others = made(kind)
    assert orbax.Run(tmp_path, model=other, optimizer=others).restore() == 5
    assert same(values(other, others), wanted)
    assert head.tolist() != list(other.parameters())[-1].tolist(), "training went on"


CHILD = """
import sys
sys.path[:0] = {path!r}
from orbax.checkpoint._src.path import atomicity
from test_written_beside_training import made, orbax, train

model, optimizer = made("module")
run = orbax.Run({directory!r}, model=model, optimizer=optimizer)
train(model, optimizer, 1)
run.save(1)
train(model, optimizer, 1)
{before}
run.save(2, wait=False)
train(model, optimizer, 1)
print("trained", flush=True)
{after}
"""
STUCK = """
import threading
async def stay(self, *args, **kwargs):
    print("written, not yet named", flush=True)
    threading.Event().wait()
atomicity.AtomicRenameTemporaryPath.finalize = stay
"""
SLOW = """
import asyncio, time
finalize = atomicity.AtomicRenameTemporaryPath.finalize
async def slow(self, *args, **kwargs):
    await asyncio.sleep(0.2)
    await asyncio.to_thread(time.sleep, 0)
    await finalize(self, *args, **kwargs)
    print("written", flush=True)
atomicity.AtomicRenameTemporaryPath.finalize = slow
"""


def child(directory: Path, before: str = "", after: str = "") -> subprocess.Popen[str]:
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    code = CHILD.format(path=paths, directory=str(directory), before=before, after=after)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_a_process_killed_while_it_writes_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    with child(tmp_path, before=STUCK) as process:
        assert process.stdout is not None
        lines = {process.stdout.readline() for _ in range(2)}
        process.send_signal(signal.SIGKILL)
    assert lines == {"written, not yet named\n", "trained\n"}
    assert any(path.name.startswith("2.") for path in tmp_path.iterdir()), "it was being written"
    model, optimizer = made("module")
    run = orbax.Run(tmp_path, model=model, optimizer=optimizer)
    assert run.steps() == [1] and run.restore() == 1
    again, others = made("module")
    train(again, others, 1)
    assert same(values(model, optimizer), values(again, others))
    run.save(2)
    assert run.steps() == [1, 2]


def test_the_end_of_the_process_waits(tmp_path: Path) -> None:
    with child(tmp_path, before=SLOW) as process:
        out, _ = process.communicate()
    assert process.returncode == 0 and out.startswith("trained\nwritten\n")
    model, optimizer = made("module")
    assert orbax.Run(tmp_path, model=model, optimizer=optimizer).restore() == 2


def test_a_write_that_fails_is_told_and_can_be_repeated(tmp_path: Path, monkeypatch: Any) -> None:
    model, optimizer = made("module")
    run = orbax.Run(tmp_path, model=model)
    run.save(1)

    async def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomicity.AtomicRenameTemporaryPath, "finalize", fail)
        run.save(2, wait=False)
        with pytest.raises(OSError, match="No space left on device"):
            run.wait()
    assert run.steps() == [1] and run.restore() == 1
    run.save(2)
    assert run.steps() == [1, 2]


# ---------------------------------------------------------------- restores that fail


class Stubborn:
    """Takes nothing over once it is told so."""

    refuses = False

    def __init__(self) -> None:
        self.state = {"n": 1}

    def state_dict(self) -> dict[str, int]:
        return dict(self.state)

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.state = dict(state)
        if self.refuses:
            raise KeyError("not today")


def refused(model: Any, optimizer: Any, extra: Stubborn) -> tuple[type[Exception], str, str]:
    extra.refuses = True
    return KeyError, "not today", "extra"


def other_groups(model: Any, optimizer: Any, extra: Stubborn) -> tuple[type[Exception], str, str]:
    more = ("more", torch.zeros(2, requires_grad=True))
    named = "param_names" in optimizer.param_groups[0]
    optimizer.add_param_group({"params": [more if named else more[1]]})
    words = "loaded state dict has a different number of parameter groups"
    return ValueError, words, "optimizer"


def other_shape(model: Any, optimizer: Any, extra: Stubborn) -> tuple[type[Exception], str, str]:
    name, p = list(model.named_parameters())[-1]
    shape, wider = p.shape, torch.Size([2, *p.shape[1:]])
    p.data = torch.zeros(wider)
    words = (
        f"size mismatch for {name}: copying a param with shape {shape} from checkpoint, the shape "
        f"in current model is {wider}."
    )
    return RuntimeError, words, "model"


@pytest.mark.parametrize("fault", [refused, other_groups, other_shape])
@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_fails_changes_nothing(kind: str, fault: Any, tmp_path: Path) -> None:
    model, optimizer = made(kind)
    train(model, optimizer, 2)
    orbax.Run(tmp_path, model=model, optimizer=optimizer, extra=Stubborn()).save(2)
    extra = Stubborn()
    extra.state["n"] = 2
    error, words, part = fault(model, optimizer, extra)
    model.requires_grad_(False).eval()
    last = list(model.parameters())[-1].requires_grad_(True)
    last.grad = torch.ones_like(last)
    state = torch.get_rng_state().tolist()

    def everything() -> Any:
        trains = {name: p.requires_grad for name, p in model.named_parameters()}
        return values(model, optimizer), trains, model.training, last.grad.tolist(), extra.state

    wanted = everything()
    with pytest.raises(error) as caught:
        orbax.Run(tmp_path, extra=extra, optimizer=optimizer, model=model).restore()
    assert words in str(caught.value)
    assert caught.value.__notes__ == [
        f"The checkpoint of step 2 does not fit the part `{part}`; nothing was restored."
    ]
    np.testing.assert_equal(everything(), wanted)
    assert torch.get_rng_state().tolist() == state


def test_missing_and_unexpected_tensors_are_named(tmp_path: Path) -> None:
    orbax.Run(tmp_path, net=nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1))).save(0)
    net = nn.Sequential(nn.Linear(2, 1))
    with pytest.raises(RuntimeError) as caught:
        orbax.Run(tmp_path, net=net).restore()
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "1.weight", "1.bias". '
    )


def test_another_program_reads_it(tmp_path: Path) -> None:
    """By orbax alone: arrays by part and path."""
    net = nn.Linear(2, 1)
    orbax.Run(tmp_path, net=net).save(0)
    with ocp.CheckpointManager(tmp_path) as manager:
        args = ocp.args.Composite(arrays=ocp.args.StandardRestore())
        found = manager.restore(0, args=args).arrays
    assert found["net/weight"].tolist() == net.weight.tolist()
