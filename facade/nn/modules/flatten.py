"""PyTorch's `torch.nn.modules.flatten`: several dims as one, one as several."""

from __future__ import annotations

from typing import Any

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Make one dim of those from `start_dim` to `end_dim`."""

    __constants__ = ["start_dim", "end_dim"]
    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Tell the dims."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Make dims of sizes `unflattened_size` of one dim."""

    __constants__ = ["dim", "unflattened_size"]
    dim: int
    unflattened_size: Any

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self._require_tuple_int(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_int(self, input: Any) -> None:
        if not isinstance(input, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}"
            )
        for place, size in enumerate(input):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {place}"
                )

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Tell the dim and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
