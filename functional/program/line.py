"""The place in a user's code that recorded an op."""

from __future__ import annotations

from typing import Any


class Line(tuple[str, int]):
    """File and line, with the names of what the line ran in.

    Attributes:
      scopes: names of blocks and the path of the module, from the outside in.
    """

    scopes: tuple[str, ...]

    def __new__(cls, file: str, number: int, scopes: tuple[str, ...] = ()) -> Line:
        made = super().__new__(cls, (file, number))
        made.scopes = scopes
        return made

    def __getnewargs__(self) -> Any:
        return (*self, self.scopes)
