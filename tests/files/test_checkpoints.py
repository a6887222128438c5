"""Checkpoints by name: whole, partial, killed while they are written, and resumed."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from helpers import resumable

import leafax as torch
from leafax.adapters import linen, lora, orbax, safetensors
from leafax.adapters import nnx as nnx_models

X = resumable.X


def model_of(width: int = 16) -> Any:
    net = resumable.Net()
    return linen.Model(net, net.init(jax.random.key(width), X))


def values(model: Any) -> dict[str, Any]:
    return {name: t.tolist() for name, t in model.state_dict().items()}


# ---------------------------------------------------------------- parameters by name


def test_a_whole_model(tmp_path: Path) -> None:
    model, other = model_of(), model_of(1)
    assert values(model) != values(other)
    safetensors.save(tmp_path / "a.safetensors", model, metadata={"made": "today"})
    report = safetensors.load(tmp_path / "a.safetensors", other)
    assert values(model) == values(other) and str(report) == "8 loaded"
    assert set(safetensors.read(tmp_path / "a.safetensors")) == set(values(model))
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_numbers_without_dimensions_keep_their_shape(tmp_path: Path) -> None:
    def model(seed: int) -> Any:
        rngs = nnx.Rngs(seed)
        parts = nnx.Linear(2, 2, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        return nnx_models.Model(nnx.Sequential(*parts))

    path = tmp_path / "a.safetensors"
    mine, other = model(0), model(1)
    mine(torch.ones(1, 2))
    safetensors.save(path, mine)
    safetensors.load(path, other)  # dropout counts its draws
    assert values(mine) == values(other)
    assert values(mine)["layers.1.rngs.count"] == 1


def test_the_trainable_part_goes_back_to_the_same_base(tmp_path: Path) -> None:
    model, other = model_of(), model_of()
    model.freeze().unfreeze("head")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    resumable.step(0, model, optimizer, _Nothing(), _Nothing())
    path = tmp_path / "head.safetensors"
    safetensors.save(path, model, only="trainable")
    assert set(safetensors.read(path)) == {"head.bias", "head.kernel"}
    report = safetensors.load(path, other)
    assert sorted(report.loaded) == ["head.bias", "head.kernel"] and len(report.missing) == 6
    assert values(other)["head.kernel"] == values(model)["head.kernel"]
    safetensors.save(path, model, only="bn")
    assert set(safetensors.read(path)) == {"bn.bias", "bn.scale", "bn.mean", "bn.var"}
    with pytest.raises(ValueError, match="nothing of the model trains, so there is nothing to sav"):
        safetensors.save(path, model.freeze(), only="trainable")
    with pytest.raises(ValueError, match="pattern `haed` matches none"):
        safetensors.save(path, model, only="haed")


class _Nothing:
    def step(self) -> None: ...

    def update_parameters(self, model: Any) -> None: ...


def test_an_adapter_alone(tmp_path: Path) -> None:
    model = model_of()
    adapter = lora.add(model, "first", rank=2)
    path = tmp_path / "adapter.safetensors"
    safetensors.save(path, adapter)
    saved = values(adapter)
    assert set(saved) == {"first.kernel.lora_a", "first.kernel.lora_b"}
    adapter.remove()
    again = lora.add(model, "first", rank=2)
    assert values(again) != saved
    safetensors.load(path, again)
    assert values(again) == saved


def test_prefixes_and_other_names(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.save(path, model_of().first)
    other = model_of(1)
    with pytest.raises(RuntimeError, match="does not fit the model: 0 loaded\n8 missing: "):
        safetensors.load(path, other)
    report = safetensors.load(path, other, into="first.")
    assert (
        report.missing == [] and values(other)["first.kernel"] == values(model_of().first)["kernel"]
    )
    safetensors.save(path, model_of())
    part = model_of(1).first
    report = safetensors.load(path, part, prefix="first.")
    assert len(report.skipped) == 6 and values(part) == values(model_of().first)
    report = safetensors.load(
        path, model_of(1), rename=lambda n: n.replace("head", "haed"), strict=False
    )
    assert report.unexpected == ["haed.bias", "haed.kernel"]
    assert report.missing == ["head.bias", "head.kernel"]
    assert "2 unexpected: haed.bias, haed.kernel" in str(report)
    report = safetensors.load(path, model_of(), rename=lambda n: None, strict=False)
    assert len(report.skipped) == len(report.missing) == 8


def test_another_shape_is_never_loaded(tmp_path: Path) -> None:
    class Wide(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2, name="head")(nn.Dense(16, name="first")(x))

    model = linen.Model(Wide(), Wide().init(jax.random.key(0), X))
    before = values(model)
    safetensors.save(tmp_path / "a.safetensors", model_of())
    message = "head.kernel is [16, 1] in the file, [16, 2] here"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        safetensors.load(tmp_path / "a.safetensors", model, strict=False)
    assert values(model) == before


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32"])
def test_dtypes(tmp_path: Path, dtype: str) -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.arange(6).reshape(2, 3).astype(dtype).T)

    model, other = nnx_models.Model(Net()), nnx_models.Model(Net())
    other.w.data = torch.zeros_like(other.w)
    safetensors.save(tmp_path / "a.safetensors", model)
    safetensors.load(tmp_path / "a.safetensors", other)
    assert other.w.tolist() == model.w.tolist() and str(other.w.dtype).endswith(dtype)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.save(path, model_of())
    before = path.read_bytes()

    def fail(*args: Any, **kwargs: Any) -> None:
        Path(args[1]).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(safetensors.safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        safetensors.save(path, model_of(1))
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


# ---------------------------------------------------------------- whole runs


def losses(start: int, stop: int, made: dict[str, Any]) -> list[float]:
    return [resumable.step(i, **made) for i in range(start, stop)]


@pytest.mark.exhaustive
def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    """SIGKILL at any moment; what is there then is complete, and gives the same losses."""
    made = resumable.parts()
    whole = losses(0, 14, made)
    command = [sys.executable, resumable.__file__, str(tmp_path), "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line == "saved 5\n":
                break
        time.sleep(random.random() * 0.3)
        child.send_signal(signal.SIGKILL)
    again = resumable.parts()
    run = orbax.Run(tmp_path / "run", **again)
    step = run.restore()
    assert step >= 5 and run.steps()[-1] == step
    if step < 14:
        np.testing.assert_allclose(losses(step, 14, again), whole[step:], rtol=1e-6)
    assert len(safetensors.read(tmp_path / "last.safetensors")) == 8


def test_everything_is_restored(tmp_path: Path) -> None:
    made = resumable.parts()
    run = orbax.Run(tmp_path, **made)
    losses(0, 6, made)
    run.save(6)
    wanted = losses(6, 10, made)
    again = resumable.parts(thaw=False)
    again["model"].unfreeze().eval()
    torch.manual_seed(99)
    assert orbax.Run(tmp_path, **again).restore() == 6
    trainable = {n for n, p in again["model"].named_parameters() if p.requires_grad}
    assert trainable == {"first.bias", "head.bias", "head.kernel"}, "the frozen tables survive"
    assert again["model"].training and again["model"]._stopped() == {"bn.mean", "bn.var"}
    assert losses(6, 10, again) == wanted
    assert again["scheduler"].get_last_lr() == made["scheduler"].get_last_lr()
    mine, theirs = (
        dict(again["average"].named_parameters()),
        dict(made["average"].named_parameters()),
    )
    assert {n: t.tolist() for n, t in mine.items()} == {n: t.tolist() for n, t in theirs.items()}


def test_steps_are_kept_and_chosen(tmp_path: Path) -> None:
    model = model_of()
    run = orbax.Run(tmp_path, keep=2, model=model)
    with pytest.raises(FileNotFoundError, match="no complete checkpoint in `.*`; there are \\[\\]"):
        run.restore()
    kept = {}
    for i in (1, 2, 3):
        model.get_parameter("head.bias").data = torch.full((1,), float(i))
        run.save(i)
        kept[i] = values(model)
    assert run.steps() == [2, 3]
    assert run.restore(2) == 2 and values(model) == kept[2]
    with pytest.raises(FileNotFoundError, match="no complete checkpoint of step 1 in .*\\[2, 3\\]"):
        run.restore(1)
    with pytest.raises(ValueError, match="there is a checkpoint of step 3 already"):
        run.save(3)
    other = orbax.Run(tmp_path, model=model, optimizer=torch.optim.SGD(model.parameters()))
    with pytest.raises(ValueError, match=re.escape("has the parts ['model'], the run has [")):
        other.restore()
    with pytest.raises(TypeError, match="`step` has no `state_dict\\(\\)` and .*, got int"):
        orbax.Run(tmp_path, step=3)


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    class Part:
        def state_dict(self) -> Any:
            return {"a": {"b": object()}}

        def load_state_dict(self, state: Any) -> None: ...

    with pytest.raises(TypeError, match="cannot save `part/a/b`: a object is neither a number"):
        orbax.Run(tmp_path, part=Part()).save(1)


@pytest.mark.exhaustive
def test_an_optax_state_with_thawed_parameters_is_restored(tmp_path: Path) -> None:
    import optax

    def begin() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = model_of().freeze("first", "bn", stats=True)
        return model, torch.optim.Optax(model.parameters(), optax.adamw(0.01))

    def go(model: Any, optimizer: Any, n: int) -> list[float]:
        return [resumable.step(0, model, optimizer, _Nothing(), _Nothing()) for _ in range(n)]

    model, optimizer = begin()
    go(model, optimizer, 2)
    model.unfreeze("first")
    go(model, optimizer, 2)
    orbax.Run(tmp_path, model=model, optimizer=optimizer).save(4)
    wanted = go(model, optimizer, 3)
    model, optimizer = begin()
    orbax.Run(tmp_path, model=model, optimizer=optimizer).restore()
    assert go(model, optimizer, 3) == wanted
