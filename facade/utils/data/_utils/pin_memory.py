"""`pin_memory` of all that a batch holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._containers import rebuilt_mapping, rebuilt_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """Call `pin_memory` of whatever in a batch has it.

    XLA copies to its devices without pinned memory, so tensors stay as they are; a batch of the
    user's own class may do something in its method.
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return rebuilt_mapping(data, {key: pin_memory(x, device) for key, x in data.items()})
    if isinstance(data, tuple):
        found = [pin_memory(x, device) for x in data]
        return type(data)(*found) if hasattr(data, "_fields") else type(data)(found)
    if isinstance(data, Sequence):
        return rebuilt_sequence(data, [pin_memory(x, device) for x in data])
    return data
