"""Reductions of arrays that each process has split over its own devices.

Each device reduces its part with those at its place in the other processes; nothing is gathered.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from .group import ProcessGroup
from .reductions import REDUCTIONS, finished


def is_split(x: Any) -> bool:
    """Tell whether an array lies in parts on several devices of this process."""
    if not isinstance(x, jax.Array) or not isinstance(x.sharding, NamedSharding):
        return False
    return x.is_fully_addressable and not x.is_fully_replicated


def reduce_split_arrays(group: ProcessGroup, arrays: Sequence[Any], op: str) -> list[Any]:
    """Bring the arrays of all processes together, each of which is split in the same way.

    Args:
      arrays: split over devices of this process.
      op: one of PyTorch's reductions, by name.

    Returns:
      Arrays that are split as those.
    """
    given = tuple(_globally(group, x) for x in arrays)
    wanted = tuple(
        NamedSharding(whole.sharding.mesh, x.sharding.spec)
        for x, whole in zip(arrays, given, strict=True)
    )
    results = finished(_program(op, wanted)(given))
    return [
        jax.make_array_from_single_device_arrays(
            x.shape, x.sharding, [part.data for part in y.addressable_shards]
        )
        for x, y in zip(arrays, results, strict=True)
    ]


@functools.lru_cache(maxsize=256)
def _program(op: str, wanted: tuple[Any, ...]) -> Any:
    def collective(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(REDUCTIONS[op](x) for x in arrays)

    return jax.jit(collective, out_shardings=wanted)


def _globally(group: ProcessGroup, x: Any) -> Any:
    """Return this process's array as its row of a global one."""
    mesh = _mesh_over(group.ranks, x.sharding.mesh)
    sharding = NamedSharding(mesh, PartitionSpec("rank", *x.sharding.spec))
    rows = [part.data[None] for part in x.addressable_shards]
    shape = (group.size(), *x.shape)
    return jax.make_array_from_single_device_arrays(shape, sharding, rows)


@functools.lru_cache(maxsize=64)
def _mesh_over(ranks: tuple[int, ...], mesh: Mesh) -> Mesh:
    """Return a mesh of this process's one in each process, along an axis `rank`."""
    devices: dict[int, list[Any]] = {}
    for d in jax.devices():
        devices.setdefault(d.process_index, []).append(d)
    if len({len(devices[r]) for r in ranks}) != 1:
        raise ValueError(
            "arrays that are split need as many devices in each process: there are "
            f"{[len(devices[r]) for r in ranks]}"
        )
    own = devices[jax.process_index()]
    places = np.vectorize(own.index, otypes=[int])(mesh.devices)
    rows = np.stack([np.array(devices[r], object)[places] for r in ranks])
    kinds = (AxisType.Auto,) * rows.ndim
    return Mesh(rows, ("rank", *mesh.axis_names), axis_types=kinds)
