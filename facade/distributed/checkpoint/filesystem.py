"""PyTorch's `torch.distributed.checkpoint.filesystem`: where a checkpoint's folder is."""

from __future__ import annotations

import os
import warnings
from typing import Any

_Path = str | os.PathLike[str]


class FileSystemWriter:
    """Name the folder that `save` writes.

    Args:
      path: the folder.
      overwrite: replace a checkpoint that is there.
      options: accepted: threads and files are orbax's affair.
    """

    def __init__(self, path: _Path, *, overwrite: bool = True, **options: Any) -> None:
        self.path, self.overwrite = path, overwrite

    @property
    def checkpoint_id(self) -> _Path:
        return self.path

    def check(self, path: str) -> None:
        """Raise or warn if a checkpoint is there already."""
        if not os.path.exists(os.path.join(path, "_METADATA")):
            return
        if not self.overwrite:
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        warnings.warn(
            f"Detected an existing checkpoint in {path}, overwriting since {self.overwrite=}. "
            f"Past version 2.5 of PyTorch, `overwrite` will default to False. Set this variable "
            f"to True to maintain this functionality or False to raise when an existing "
            f"checkpoint is found.",
            stacklevel=4,
        )


class FileSystemReader:
    """Name the folder that `load` reads."""

    def __init__(self, path: _Path) -> None:
        self.path = path

    @property
    def checkpoint_id(self) -> _Path:
        return self.path


def folder(storage: Any, checkpoint_id: Any) -> str:
    """Return the folder that a caller means.

    Raises:
      RuntimeError: neither is given.
    """
    if checkpoint_id is None and storage is None:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    return os.path.abspath(os.fspath(storage.path if checkpoint_id is None else checkpoint_id))
