"""Documents whose code is run, and whose outputs are compared with what it prints.

python tests/helpers/guides.py DOCUMENT
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any


def as_pattern(text: str) -> str:
    """A regular expression for a line, in which numbers and the widths of columns may differ."""
    pattern = re.sub(r"\d+(\\\.\d+)?", r"[\\d.]+", re.escape(text))
    return re.sub(r"(\\ )+", " +", pattern)


def check_guide(path: Path) -> None:
    """Run a document's Python blocks in one scope; each block of text is what was printed last."""
    guide = path.read_text()
    scope: dict[str, Any] = {"__name__": "guide"}
    printed, shown = io.StringIO(), 0
    for block in re.finditer(r"```(python|text)\n(.*?)```", guide, re.DOTALL):
        kind, text = block.groups()
        if kind == "python":
            above = "\n" * guide.count("\n", 0, block.start(2))  # for the lines that errors tell
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(above + text, path.name, "exec"), scope)
            continue
        shown += 1
        for said, told in zip(text.splitlines(), printed.getvalue().splitlines(), strict=True):
            assert re.fullmatch(as_pattern(said), told), f"{told!r} where the guide has {said!r}"
    assert shown == guide.count("```text")


if __name__ == "__main__":
    check_guide(Path(sys.argv[1]))
