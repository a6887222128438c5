"""PyTorch's `torch.distributed.tensor.placement_types`: how a tensor lies on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jax.sharding import NamedSharding, PartitionSpec

from ..._runtime.placing import shortened
from ..device_mesh import DeviceMesh
from ..sharding import axes_of

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base of the ways that a tensor lies on several devices."""

    def is_replicate(self) -> bool:
        """Tell whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Tell whether each device has a part of a sum."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)

    def is_shard(self, dim: int | None = None) -> bool:
        """Tell whether each device has a part of a dimension."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)


@dataclass(frozen=True)
class Replicate(Placement):
    """All of a tensor on each device."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Shard(Placement):
    """A part of a dimension on each device.

    Args:
      dim: the dimension.
    """

    dim: int

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Partial(Placement):
    """A part of a sum on each device: nothing that leafax has.

    Args:
      reduce_op: how the parts are brought together.
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def spec_of(mesh: DeviceMesh, placements: Sequence[Placement] | None, ndim: int) -> PartitionSpec:
    """Return JAX's spec for placements along the dimensions of a mesh.

    Args:
      mesh: the mesh.
      placements: one for each of its dimensions; whole on each device for None.
      ndim: of the tensor.

    Raises:
      ValueError: not as many placements as dimensions.
      IndexError: a dimension that the tensor has not.
      NotImplementedError: a part of a sum.
    """
    if placements is None:
        placements = [Replicate()] * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements "
            f"length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    axes: list[list[str]] = [[] for _ in range(ndim)]
    for axis, placement in zip(mesh.axes, placements, strict=True):
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
                    f"but got {placement.dim})"
                )
            axes[placement.dim].append(axis)
        elif not isinstance(placement, Replicate):
            raise NotImplementedError(
                f"leafax has no tensors whose parts are to be added, as {placement!r} says: XLA "
                "adds them where a program needs the sum. Use Shard or Replicate"
            )
    return shortened(PartitionSpec(*map(tuple, axes)))


def placements_of(sharding: NamedSharding) -> tuple[Placement, ...]:
    """Return the placements along the axes of a sharding's mesh."""
    found: dict[str, Placement] = {}
    for dim, entry in enumerate(sharding.spec):
        for axis in axes_of(entry):
            found[axis] = Shard(dim)
    return tuple(found.get(a, Replicate()) for a in sharding.mesh.axis_names)
