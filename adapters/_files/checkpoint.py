"""The tensors of a PyTorch checkpoint as arrays of NumPy, by name."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from leafax.serialization import read_arrays

# What an unpickler lets through when a pickle's opcodes make no sense.
_MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def load_checkpoint(
    path: str | os.PathLike[str], *, key: str | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Read the tensors of a file that `torch.save` wrote, without torch and without running code.

    Both formats are read: the zip archives of torch >= 1.6 and the legacy stream before. A file
    that asks for anything but tensors and plain containers is refused.

    Args:
        path: the checkpoint, a `state_dict` or a dict that holds one.
        key: where in the checkpoint the state dict is, as `"state_dict"` or `"model"`; None
            means that the checkpoint is the state dict.

    Returns:
        Name -> array with the shape, dtype and strides saved, in the file's order; bfloat16 is
        `ml_dtypes.bfloat16`. Tensors that shared a storage share their memory here too.

    Raises:
        pickle.UnpicklingError: the file is truncated, is no checkpoint, or asks for something
            that is not admitted (the message names it).
        ValueError: the checkpoint is not a dict of tensors.

    Example:
        >>> load_checkpoint("model.pth")["fc.weight"].shape  # doctest: +SKIP
        (1000, 1280)
    """
    try:
        saved = read_arrays(path)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"cannot read `{os.fspath(path)}`: {error}") from None
    except (EOFError, NotImplementedError, RuntimeError) as error:
        raise pickle.UnpicklingError(
            f"cannot read `{os.fspath(path)}`: {error or 'it is truncated'}"
        ) from error
    except _MALFORMED as error:
        raise pickle.UnpicklingError(
            f"cannot read `{os.fspath(path)}`: its pickle is malformed ({error})"
        ) from error
    return _state_dict(saved, key)


def _state_dict(saved: object, key: str | None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the dict of tensors that was saved, or the one under `key`."""
    entries = _entries(saved)
    if key is not None:
        if key not in entries:
            raise ValueError(f"the checkpoint has no entry `{key}`; {_summary(entries)}")
        entries = _entries(entries[key])
    for name, value in entries.items():
        if type(name) is not str or type(value) is not np.ndarray:
            raise ValueError(
                f"entry `{name}` of the checkpoint is a {type(value).__name__}, not a tensor; name"
                f" the entry that holds the state dict with `key=...`; {_summary(entries)}"
            )
    return entries


def _entries(saved: object) -> dict[Any, Any]:
    if not isinstance(saved, dict):
        raise ValueError(f"the checkpoint holds a {type(saved).__name__}, not a dict of tensors")
    return dict(dict.items(saved))


def _summary(entries: dict[Any, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in list(entries)[:8])
    return f"its entries are {names}{', ...' if len(entries) > 8 else ''}"
