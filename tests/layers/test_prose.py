"""Docstrings begin with what a thing is or does, not with a question word."""

import ast
from collections.abc import Iterator

import pytest

from .test_layers import ROOT, SOURCES

HEADS = frozenset({"What", "Whether", "Let", "How", "Those", "That"})
FOLDERS = ("tests", "examples", "benchmarks", "build_tools")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
FILES = SOURCES + sorted(
    path.relative_to(ROOT).as_posix() for name in FOLDERS for path in (ROOT / name).rglob("*.py")
)


def folder(source: str) -> str:
    """Return the folder of a file, at most two deep: `facade/_core`."""
    return "/".join(source.split("/")[:-1][:2])


def question_heads(source: str) -> Iterator[str]:
    """Yield the places in a file where a docstring begins with a question word."""
    for node in ast.walk(ast.parse((ROOT / source).read_text())):
        if isinstance(node, DOCUMENTED):
            words = (ast.get_docstring(node) or "").split(maxsplit=1)
            if words and words[0] in HEADS:
                yield f"{source}:{getattr(node, 'lineno', 1)}: {words[0]} ..."


@pytest.mark.parametrize("name", sorted({folder(source) for source in FILES}))
def test_docstrings_begin_with_no_question_word(name: str) -> None:
    places = [p for source in FILES if folder(source) == name for p in question_heads(source)]
    assert not places, "\n".join(places)
