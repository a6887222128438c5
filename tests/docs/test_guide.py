"""The code of docs/from-pytorch.md and docs/precision.md runs and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flax")
DOCS = Path(__file__).parents[2] / "docs"


def as_pattern(text: str) -> str:
    """A regular expression for a line, in which numbers and the widths of columns may differ."""
    pattern = re.sub(r"\d+(\\\.\d+)?", r"[\\d.]+", re.escape(text))
    return re.sub(r"(\\ )+", " +", pattern)


@pytest.mark.parametrize("name", ["from-pytorch.md", "precision.md"])
def test_guide_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (DOCS / name).read_text()
    scope: dict[str, Any] = {"__name__": "guide"}
    printed, shown = io.StringIO(), 0
    for block in re.finditer(r"```(python|text)\n(.*?)```", guide, re.DOTALL):
        kind, text = block.groups()
        if kind == "python":
            above = "\n" * guide.count("\n", 0, block.start(2))  # for the lines that errors tell
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(above + text, name, "exec"), scope)
            continue
        shown += 1
        for said, told in zip(text.splitlines(), printed.getvalue().splitlines(), strict=True):
            assert re.fullmatch(as_pattern(said), told), f"{told!r} where the guide has {said!r}"
    assert shown == guide.count("```text")
