"""Objects that a thread keeps under a name: `torch._C._stash_obj_in_tls` and its kin."""

from __future__ import annotations

import threading
from typing import Any


class _Stash(threading.local):
    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}


_stash = _Stash()


def stash_obj_in_tls(key: str, arg: Any) -> None:
    """Keep an object under a name for this thread."""
    _stash.objects[key] = arg


def is_key_in_tls(key: str) -> bool:
    """Return whether this thread keeps an object under that name."""
    return key in _stash.objects


def get_obj_in_tls(key: str) -> Any:
    """Return the object under that name.

    Raises:
      RuntimeError: if there is none.
    """
    if key not in _stash.objects:
        raise RuntimeError(
            "Expected py_objects.obj_dict_.count(key) to be true, but got false.  (Could this "
            "error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return _stash.objects[key]


def remove_obj_from_tls(key: str) -> None:
    """Forget the object under that name, if there is one."""
    _stash.objects.pop(key, None)
