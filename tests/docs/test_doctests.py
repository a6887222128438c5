"""The examples in docstrings run and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = {"facade": "leafax", "functional": "leafax.functional", "adapters": "leafax.adapters"}


def module_names() -> list[str]:
    """Import names of all files: by folder they would be imported a second time."""
    names = []
    for folder, package in NAMES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>>" in path.read_text():
                below = path.relative_to(ROOT / folder).with_suffix("").parts
                names.append(".".join([package, *(part for part in below if part != "__init__")]))
    return names


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples differ"
