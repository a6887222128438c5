"""One tensor that a node saved, and the version that it had."""

from __future__ import annotations

from typing import Any, NamedTuple


class Saved(NamedTuple):
    """An input or result that a node's gradient reads, and the version it had."""

    tensor: Any
    version: int
    vc: Any  # the live version counter, None if nobody can write to it any more
    holder: Any = None  # weak reference to the tensor that held it
    detached: bool = False  # `detach_()` cut that tensor off
    mate: Any = None  # weak reference to what errors take for that tensor after a write
    of: Any = None  # weak reference to what it views or shares, where nobody else has it
    copied: bool = False  # no write to what shares memory with the holder reaches it

    @property
    def now(self) -> int:
        return self.version if self.vc is None else int(self.vc[0])
