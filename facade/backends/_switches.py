"""Switches that are remembered, and set for the length of a block."""

from __future__ import annotations

from typing import Any


class Switches:
    """Holds what it is told.

    Args:
      switches: the names and what they are at first.
    """

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)


def exchange(module: dict[str, Any], **values: Any) -> tuple[Any, ...]:
    """Set variables of a module and return what they were; None leaves one as it is."""
    before = tuple([module[name] for name in values])
    module.update({name: value for name, value in values.items() if value is not None})
    return before
