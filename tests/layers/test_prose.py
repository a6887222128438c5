"""Docstrings begin with what a thing is or does, not with a question word.

How many still begin with one is listed by folder in `tests/layers/exceptions.toml`. The counts may
only shrink: one that is too large fails too. `python tests/layers/test_layers.py` writes smaller
ones.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from layers.test_layers import EXCEPTIONS, ROOT, SOURCES, exceptions

HEADS = frozenset({"What", "Whether", "Let", "How", "Those"})
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


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


@cache
def found() -> dict[str, list[str]]:
    """Return the places by folder."""
    places: dict[str, list[str]] = {folder(source): [] for source in SOURCES}
    for source in SOURCES:
        places[folder(source)] += question_heads(source)
    return places


def allowed() -> dict[str, int]:
    """Return the listed counts by folder."""
    entries = [entry.rsplit(": ", 1) for entry in exceptions()["question_heads"]]
    return {name: int(count) for name, count in entries}


@pytest.mark.parametrize("name", sorted({folder(source) for source in SOURCES}))
def test_docstrings_begin_with_no_question_word(name: str) -> None:
    places, most = found()[name], allowed().get(name, 0)
    assert len(places) <= most, "\n".join(places)
    assert len(places) == most, "fewer than listed: run `python tests/layers/test_layers.py`"


def test_only_the_facade_has_some_left() -> None:
    assert all(re.fullmatch(r"facade(/\w+)?", name) for name in allowed())


def shrink() -> None:
    """Write the counts into the file of exceptions, where they are smaller."""
    listed, places = allowed(), found()
    counts = {name: min(most, len(places.get(name, []))) for name, most in listed.items()}
    lines = [f'    "{name}: {count}",' for name, count in counts.items() if count]
    text = EXCEPTIONS.read_text()
    start = text.index("question_heads = [")
    end = text.index("]\n", start)
    body = "".join(f"{line}\n" for line in lines)
    EXCEPTIONS.write_text(f"{text[:start]}question_heads = [\n{body}{text[end:]}")


if __name__ == "__main__":
    shrink()
