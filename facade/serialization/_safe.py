"""The globals that users trust in files that are loaded with `weights_only=True`."""

from __future__ import annotations

from typing import Any

_trusted: set[Any] = set()


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Trust functions and classes that files name.

    Args:
      safe_globals: functions and classes, or pairs of one and the full name it has in files.
    """
    _trusted.update(safe_globals)


def get_safe_globals() -> list[Any]:
    """Return the globals that were added and are trusted now."""
    return list(_trusted)


def clear_safe_globals() -> None:
    """Trust none of the globals that were added any longer."""
    _trusted.clear()


class safe_globals:
    """Trust functions and classes that files name, until the end of a `with` block."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc: Any) -> None:
        _trusted.difference_update(self.safe_globals)


def trusted() -> dict[str, Any]:
    """Return the globals that users trust, by the full names that files have for them.

    Raises:
      ValueError, TypeError: an entry that is a tuple is no pair of a global and a name.
    """
    found = {}
    for entry in _trusted:
        if not isinstance(entry, tuple):
            found[f"{entry.__module__}.{entry.__qualname__}"] = entry
            continue
        if len(entry) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                f"length: {len(entry)}"
            )
        if type(entry[1]) is not str:
            raise TypeError(
                "Expected second item in tuple to be str of callable full path, but got: "
                f"{type(entry[1])}"
            )
        found[entry[1]] = entry[0]
    return found
