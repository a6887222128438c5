"""Handles that remove hooks."""

from __future__ import annotations

import itertools
from typing import Any

_hook_ids = itertools.count()


class RemovableHandle:
    """Removes a hook; also a context manager.

    Args:
      hooks_dict: the hooks by number; this one's number is `id`.
      extra_dict: a dictionary, or a list of them, with more that `remove` takes off.
    """

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.id = next(_hook_ids)
        self._hooks = hooks_dict
        self._extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()

    def remove(self) -> None:
        """Take the hook off; calling it again does nothing."""
        for hooks in (self._hooks, *self._extra):
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


RemovableHandle.__module__ = "leafax.utils.hooks"
