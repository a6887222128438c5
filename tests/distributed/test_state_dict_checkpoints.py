"""`distributed.checkpoint`: what comes back is what torch gives back, and its words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint
from orbax.checkpoint._src.path import atomicity

import leafax
import leafax.distributed.checkpoint

BOTH = pytest.mark.parametrize("t", [torch, leafax], ids=["torch", "leafax"])
ALONE = "ignore:torch.distributed is disabled, unavailable or uninitialized:UserWarning"
pytestmark = pytest.mark.filterwarnings(ALONE)


class Counter:
    """It has a state dict."""

    n = 3

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"] + 100


def contents(t: Any, k: float) -> dict[str, Any]:
    return {
        "model": {"w": t.full((2, 3), k), "list": [t.tensor([int(k)]), 3 + k], "e": t.zeros(0, 2)},
        "half": t.full((2,), k, dtype=t.bfloat16),
        "step": k,
        "groups": [{"lr": k, "params": [0, 1]}],
        "deep": {"none": None},
        "counter": Counter(),
    }


def shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shown(v) for v in value]
    if isinstance(value, Counter):
        return value.n
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value


@pytest.mark.parametrize("how", ["save", "async_save"])
def test_what_was_saved_is_loaded(how: str, tmp_path: Path) -> None:
    results = []
    for t in (torch, leafax):
        dcp = t.distributed.checkpoint
        saved, path = contents(t, 2.0), str(tmp_path / t.__name__)
        done = getattr(dcp, how)(saved, checkpoint_id=path)
        saved["model"]["w"] += 1  # has been copied
        assert how == "save" or done.result(timeout=60) is None or t is torch
        other = contents(t, 7.0)
        weight = other["model"]["w"]
        del other["half"]
        dcp.load(other, storage_reader=dcp.FileSystemReader(path))
        assert other["model"]["w"] is weight, "in place"
        results.append(shown(other))
    assert results[1] == results[0]


@BOTH
def test_errors(t: Any, tmp_path: Path) -> None:
    dcp, path = t.distributed.checkpoint, str(tmp_path / "a")
    dcp.save({"model": {"w": t.ones(2, 2), "v": t.zeros(2)}}, checkpoint_id=path)
    mine = {"model": {"v": t.ones(2), "w": t.ones(3, 2)}}
    with pytest.raises(BaseException) as caught:
        dcp.load(mine, checkpoint_id=path)
    assert type(caught.value).__name__ == "CheckpointException"
    assert caught.value.failures.keys() == {0}
    assert str(caught.value).endswith(
        "\nValueError: Size mismatch between saved torch.Size([2, 2]) and current: "
        "torch.Size([3, 2]) for model.w\n"
    )
    assert mine["model"]["v"].tolist() == [1, 1], "nothing was loaded"
    with pytest.raises(BaseException) as caught:
        dcp.load({"model": {"u": t.ones(2)}}, checkpoint_id=path)
    assert str(caught.value).endswith(
        "\nRuntimeError: Missing key in checkpoint state_dict: model.u.\n"
    )
    with pytest.raises(BaseException, match="No such file or directory"):
        dcp.load({}, checkpoint_id=path + "b")
    for name in ("load", "save"):
        with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified if storage_rea"):
            getattr(dcp, name)({})
    with pytest.warns(UserWarning, match="Detected an existing checkpoint in .*, overwriting sin"):
        dcp.save({"a": t.ones(1)}, checkpoint_id=path)
    writer = dcp.FileSystemWriter(path, overwrite=False)
    with pytest.raises(BaseException, match="Checkpoint already exists and self.overwrite=False"):
        dcp.save({"a": t.ones(1)}, storage_writer=writer)


def test_older_names(tmp_path: Path) -> None:
    dcp = leafax.distributed.checkpoint
    dcp.save_state_dict({"a": {"b": leafax.ones(2)}}, dcp.FileSystemWriter(tmp_path / "a"))
    state = {"a": {"b": leafax.zeros(2)}}
    dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path / "a"))
    assert state["a"]["b"].tolist() == [1, 1]


def test_a_write_that_fails_is_told_by_the_future(tmp_path: Path, monkeypatch: Any) -> None:
    async def fail(*args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomicity.AtomicRenameTemporaryPath, "finalize", fail)
    dcp = leafax.distributed.checkpoint
    done = dcp.async_save({"a": leafax.ones(1)}, checkpoint_id=tmp_path / "a")
    with pytest.raises(OSError, match="No space left on device"):
        done.result(timeout=60)
    with pytest.raises(dcp.CheckpointException, match="No such file or directory"):
        dcp.load({"a": leafax.ones(1)}, checkpoint_id=tmp_path / "a")
