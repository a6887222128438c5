"""The files that documents, docstrings and comments name in backticks exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT, ROOT / "facade", ROOT / "functional", ROOT / "adapters")
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
FENCED = re.compile(r"```.*?```", re.DOTALL)
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
PYTHON_FILE = re.compile(r"(?<!\S)(?:[\w.-]+/)*\w+\.py\b")
MODULE_OR_FOLDER = re.compile(r"\w+(?:/\w+)+/?")


def named_files(text: str) -> list[str]:
    """Return the names of Python files that a text has within backticks."""
    quoted = IN_BACKTICKS.findall(FENCED.sub("", text))
    return [name for part in quoted for name in PYTHON_FILE.findall(part)]


def named_modules(text: str) -> list[str]:
    """Return the modules and folders, as `_runtime/cut`, that a text has within backticks."""
    quoted = IN_BACKTICKS.findall(FENCED.sub("", text))
    return [part for part in quoted if MODULE_OR_FOLDER.fullmatch(part)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_files_named_in_documents_exist(document: Path) -> None:
    paths = [name for name in named_files(document.read_text()) if "/" in name]
    missing = [p for p in paths if not any((folder / p).is_file() for folder in FOLDERS)]
    assert not missing


def test_modules_named_in_the_design_exist() -> None:
    modules = named_modules((ROOT / "docs" / "design.md").read_text())
    assert len(modules) > 20
    missing = [
        module
        for module in modules
        if not any((f / module).is_dir() or (f / f"{module}.py").is_file() for f in FOLDERS)
    ]
    assert not missing


def test_files_named_in_sources_exist() -> None:
    sources = [s for folder in FOLDERS[1:] for s in folder.rglob("*.py")]
    known = {s.name for s in sources}
    missing = [
        f"{source.relative_to(ROOT)}: {name}"
        for source in sources
        for name in named_files(source.read_text())
        if not (any((f / name).is_file() for f in FOLDERS) if "/" in name else name in known)
        and not (source.parent / name).is_file()
    ]
    assert not missing, "\n".join(missing)


def test_names_are_found() -> None:
    text = "Run `python a/b.py -x`, see `nn/b.py:3`, `c.py`, `_d/e` and f/g.py.\n```\n`h.py`\n```"
    assert named_files(text) == ["a/b.py", "nn/b.py", "c.py"]
    assert named_modules(text) == ["_d/e"]
