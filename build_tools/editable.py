"""Editable installs that type checkers read, too.

The folders `facade`, `functional` and `adapters` have other import names. setuptools' own editable
install maps them by an import hook, which mypy and pyright do not run. Links give the folders the
shape of their import names, so that a line in a `.pth` file is enough.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools.command.editable_wheel import editable_wheel

LINKS = Path(".editable")
# Links to folders: a file that is added needs no new install.
_TARGETS = {
    LINKS / "leafax": Path("facade"),
    Path("facade", "functional"): Path("functional"),
    Path("facade", "adapters"): Path("adapters"),
}


class EditableByLinks(editable_wheel):  # type: ignore[misc]
    """Make the wheel of `pip install -e`: links and a `.pth` file, or else the import hook."""

    def finalize_options(self) -> None:
        """Tell setuptools where the packages are, if links can be made."""
        super().finalize_options()
        if make_links(Path(self.project_dir)):
            self.package_dir = {"": str(LINKS)}


def make_links(root: Path) -> bool:
    """Link the folders to where their import names say, and tell if the system has such links.

    Args:
      root: the folder of `pyproject.toml`.
    """
    try:
        (root / LINKS).mkdir(exist_ok=True)
        for link, target in _TARGETS.items():
            path = root / link
            if path.is_symlink():
                path.unlink()
            path.symlink_to(os.path.relpath(root / target, path.parent), target_is_directory=True)
    except (NotImplementedError, OSError):  # Windows allows them to developers alone
        return False
    return True
