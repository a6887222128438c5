"""`pin_memory` of all that a batch holds."""

from __future__ import annotations

from typing import Any

from ._containers import map_leaves


def pin_memory(data: Any, device: Any = None) -> Any:
    """Call `pin_memory` of whatever in a batch has it.

    XLA copies to its devices without pinned memory, so tensors stay as they are; a batch of the
    user's own class may do something in its method.
    """
    return map_leaves(lambda x: x.pin_memory(), data, "pin_memory")
