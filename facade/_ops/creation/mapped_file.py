"""Bytes of a file as an array that is read where it is used."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def mapped_file(filename: Any, shared: bool, nbytes: int) -> np.ndarray:
    """Map the first bytes of a file.

    Args:
      filename: a path.
      shared: must be False.

    Returns:
      `uint8[nbytes]`; writes to it do not reach the file.

    Raises:
      RuntimeError: there is no such file, or it has fewer bytes.
      NotImplementedError: for `shared=True`.
    """
    if shared:
        raise NotImplementedError(
            "from_file(shared=True): what is written to JAX's arrays does not get into the file; "
            "pass shared=False, and save what is to be kept"
        )
    name = os.fspath(filename)
    try:
        size = os.stat(name).st_size
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{name}> in read-only mode: {error.strerror} ({error.errno})"
        ) from None
    if size < nbytes:
        raise RuntimeError(
            f"file <{name}> size <{size}> is smaller than the required mapping size <{nbytes}>"
        )
    return np.memmap(name, np.uint8, "c", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8)
