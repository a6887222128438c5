"""PyTorch's `torch.distributed.device_mesh`: meshes of devices, each of which is one of JAX's.

A mesh has devices of JAX where PyTorch's has ranks: a process computes on all its devices, so a
mesh may have several devices of each process. `DeviceMesh.jax` is the mesh for JAX.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from .._core.dtypes import device as _device
from .._core.jax_devices import jax_device
from .._core.processes.group import ProcessGroup, default_group, is_initialized
from .._ops.creation.from_data import as_tensor
from .distributed_c10d import init_process_group

__all__ = ["DeviceMesh", "init_device_mesh"]

_UNNAMED = "dim_"


class DeviceMesh:
    """An array of devices, whose dimensions a tensor may be split along.

    Args:
      device_type: the kind of device, without a number.
      mesh: numbers of devices among all of that kind, of all processes; a tensor or lists.
      mesh_dim_names: a name for each dimension.

    Attributes:
      jax: the mesh of JAX, with the dimensions of the mesh that this one was taken from.
      axes: the names of this mesh's dimensions in there.

    Raises:
      RuntimeError: there are no such devices, or names do not fit.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None, _init_backend: bool = True,
    ) -> None:  # fmt: skip
        numbers = np.asarray(as_tensor(mesh).tolist(), np.int64)
        devices = _all_devices(device_type)
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(devices):
            raise RuntimeError(
                f"the mesh has device {int(numbers.max())}, and there are {len(devices)} of "
                f"{device_type!r} over all processes"
            )
        names = _check_names(mesh_dim_names, numbers.shape)
        self.device_type = device_type
        self.axes = names or tuple(f"{_UNNAMED}{i}" for i in range(numbers.ndim))
        chosen = np.array([devices[n] for n in numbers.flat], object).reshape(numbers.shape)
        self.jax = Mesh(chosen, self.axes, axis_types=(AxisType.Auto,) * numbers.ndim)

    @classmethod
    def from_jax(cls, mesh: Mesh, axes: Sequence[str] | None = None) -> DeviceMesh:
        """Return a mesh for one of JAX, or for some of its axes.

        Args:
          mesh: a mesh of JAX.
          axes: names of its axes, all for None.
        """
        made = object.__new__(cls)
        platform = mesh.devices.flat[0].platform
        made.device_type = "cuda" if platform in ("gpu", "cuda", "rocm") else platform
        made.jax = mesh
        made.axes = tuple(mesh.axis_names if axes is None else axes)
        return made

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The dimensions' names, None if they have none."""
        return None if any(a.startswith(_UNNAMED) for a in self.axes) else self.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions' lengths."""
        return tuple(self.jax.shape[a] for a in self.axes)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.axes)

    @property
    def mesh(self) -> Any:
        """The devices' numbers, as a tensor; of a part of a mesh that which has this process."""
        numbers = {d: i for i, d in enumerate(_all_devices(self.device_type))}
        return as_tensor(np.vectorize(numbers.__getitem__, otypes=[np.int64])(self._devices()))

    def size(self, mesh_dim: int | str | None = None) -> int:
        """Count the devices, in all or along one dimension."""
        if mesh_dim is None:
            return math.prod(self.shape)
        return int(self.jax.shape[self._axis(mesh_dim)])

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        asked = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        names = self.mesh_dim_names
        if names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if not all(a in names for a in asked):
            raise KeyError(
                f"Invalid mesh_dim_names {asked} specified. Valid mesh_dim_names are {list(names)}."
            )
        return self if asked == self.axes else DeviceMesh.from_jax(self.jax, asked)

    def get_coordinate(self) -> list[int] | None:
        """Return where in the mesh this process's first device is; None if it has none there."""
        own = jax.process_index(self._backend())
        places = np.argwhere(
            np.vectorize(lambda d: d.process_index == own, otypes=[bool])(self.jax.devices)
        )
        if not len(places):
            return None
        first = dict(zip(self.jax.axis_names, places[0].tolist(), strict=True))
        return [first[a] for a in self.axes]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the place of this process's first device along a dimension."""
        axis = self._axis(mesh_dim)
        place = self.get_coordinate()
        return -1 if place is None else place[self.axes.index(axis)]

    def get_rank(self) -> int:
        """Return the number of this process among all."""
        return int(jax.process_index(self._backend()))

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the processes whose devices lie along a dimension, beside this one's first.

        Raises:
          RuntimeError: the mesh has several dimensions, and none is named.
        """
        along = DeviceMesh.from_jax(self.jax, (self._axis(mesh_dim),))._devices()
        whole = default_group() if is_initialized() else ProcessGroup()
        return whole.part(tuple(sorted({d.process_index for d in along.flat})))

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the group of each dimension."""
        return [self.get_group(a) for a in self.axes]

    def _axis(self, mesh_dim: int | str | None) -> str:
        """Return the name of a dimension, the only one for None."""
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                )
            mesh_dim = 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in self.axes:
                raise KeyError(
                    f"Invalid mesh_dim_names ({mesh_dim!r},) specified. Valid mesh_dim_names are "
                    f"{list(self.axes)}."
                )
            return mesh_dim
        return self.axes[mesh_dim]

    def _devices(self) -> np.ndarray:
        """Return the devices, at this process's place in other dimensions."""
        whole = DeviceMesh.from_jax(self.jax)
        place = dict(zip(whole.axes, whole.get_coordinate() or [0] * whole.ndim, strict=True))
        index = tuple(slice(None) if a in self.axes else place[a] for a in whole.axes)
        left = [a for a in whole.axes if a in self.axes]
        return np.transpose(self.jax.devices[index], [left.index(a) for a in self.axes])

    def _backend(self) -> Any:
        return self.jax.devices.flat[0].client

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self.axes == other.axes and bool(self.jax == other.jax)

    def __hash__(self) -> int:
        return hash((self.axes, self.jax))

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self  # devices are there once

    def __repr__(self) -> str:
        names, shape = self.mesh_dim_names, self.shape
        sizes = shape if names is None else [f"{a}={n}" for a, n in zip(names, shape, strict=True)]
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        comma = "," if names is None and len(shape) == 1 else ""
        return (
            f"DeviceMesh(({', '.join(map(str, sizes))}{comma}), {self.device_type!r}, "
            f"stride={strides})"
        )


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *,
    mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """Return a mesh of the first devices of a kind, over all processes.

    Where the environment tells of several processes, the default process group is made first.

    Args:
      device_type: the kind of device, without a number.
      mesh_shape: the dimensions' lengths.
      mesh_dim_names: a name for each dimension.

    Raises:
      RuntimeError: there are fewer devices, or the names do not fit.
    """
    _check_names(mesh_dim_names, mesh_shape)
    if ":" in device_type:
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    if not is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        init_process_group()
    count, found = math.prod(mesh_shape), len(_all_devices(device_type))
    if count > found:
        raise RuntimeError(
            f"Mesh should not be bigger than the {found} devices of {device_type!r} that there are "
            f"over all processes, but found {count} ranks!"
        )
    numbers = np.arange(count).reshape(mesh_shape)
    return DeviceMesh(device_type, numbers, mesh_dim_names=mesh_dim_names)


def _check_names(names: Sequence[str] | None, shape: Sequence[int]) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(names)
    if len(set(names)) != len(names):
        raise RuntimeError(
            "Each mesh_dim_name must be unique.",
            f"Found repeated mesh_dim_name in mesh_dim_names {names}",
        )
    if len(names) != len(shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length!",
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}.",
        )
    return names


def _all_devices(device_type: str) -> list[Any]:
    """List the devices of a kind, of all processes."""
    return list(jax_device(_device(device_type)).client.devices())
