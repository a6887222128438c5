"""`split`, which is Python's in PyTorch: it has names of its own, and errors are Python's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._dispatch.known_calls import in_one_step


@in_one_step
def split(
    tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Any, ...]:
    """Views of pieces of one length (the last may be shorter), or of the lengths given."""
    return tensor.split(split_size_or_sections, dim)  # type: ignore[no-any-return]


def method_of(pieces: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method.

    Args:
      pieces: what the op table gives for it.
    """

    def split(self: Any, split_size: int | Sequence[int], dim: int = 0) -> tuple[Any, ...]:
        """Views of pieces of one length (the last may be shorter), or of the lengths given."""
        return pieces(self, split_size, dim)  # type: ignore[no-any-return]

    split.__qualname__ = "Tensor.split"  # Python's errors say it
    return split
