"""PyTorch's `torch.distributed.tensor.placement_types`: how a tensor lies on several devices."""

from __future__ import annotations

from dataclasses import dataclass


class Placement:
    """Base of the ways that a tensor lies on several devices."""

    def is_replicate(self) -> bool:
        """Tell whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Tell whether each device has a part of a sum."""
        return isinstance(self, Partial)

    def is_shard(self, dim: int | None = None) -> bool:
        """Tell whether each device has a part of a dimension."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)


@dataclass(frozen=True)
class Replicate(Placement):
    """All of a tensor on each device."""


@dataclass(frozen=True)
class Shard(Placement):
    """A part of a dimension on each device.

    Args:
      dim: the dimension.
    """

    dim: int


@dataclass(frozen=True)
class Partial(Placement):
    """A part of a sum on each device.

    Args:
      reduce_op: how the parts are brought together.
    """

    reduce_op: str = "sum"
