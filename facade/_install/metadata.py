"""The distribution `torch`, as packages ask `importlib.metadata` and `pkg_resources` for it."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

#: The release of PyTorch whose behaviour leafax has.
VERSION = "2.13.0"
_FILES = {
    "METADATA": (
        f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n"
        "Summary: leafax, standing for PyTorch\n"
    ),
    "top_level.txt": "torch\n",
    "RECORD": "",
}
_ROOT = Path(__file__).parents[1]


class TorchDistribution(importlib.metadata.Distribution):
    """Answer for the distribution `torch`, of which no file is on the disk."""

    def read_text(self, filename: str | os.PathLike[str]) -> str | None:
        """Return the text of a file of metadata, None for those that there are not."""
        return _FILES.get(os.fspath(filename))

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        """Return where a file of the distribution would be."""
        return _ROOT / path


def find_distributions(context: Any) -> Iterator[importlib.metadata.Distribution]:
    """Yield the distribution if it, or all that there are, are asked for."""
    name = context.name
    if name is None or re.sub(r"[-_.]+", "-", name).lower() == "torch":
        yield TorchDistribution()


def add_to_working_set(pkg_resources: ModuleType) -> None:
    """Tell `pkg_resources`, which lists what is installed when it is imported."""
    pkg_resources.working_set.add(
        pkg_resources.Distribution(
            location=str(_ROOT), project_name="torch", version=VERSION,
        ),
        replace=True,
    )  # fmt: skip


def remove_from_working_set(pkg_resources: ModuleType) -> None:
    """Take back what `add_to_working_set` did."""
    found = pkg_resources.working_set.by_key
    if "torch" in found and found["torch"].location == str(_ROOT):
        del found["torch"]
        for keys in pkg_resources.working_set.entry_keys.values():
            if "torch" in keys:
                keys.remove("torch")
