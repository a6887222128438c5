"""Collectives: programs of one device a process, which all processes of a group run together.

Each process gives an array of the same shape. They are one global array there, split over the
processes by a first dimension, and XLA makes of a sum over that dimension what the network does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from leafax.functional.execution.several_devices import alone

from .group import ProcessGroup
from .reductions import REDUCTIONS, check_reduction, finished, network_errors
from .split_arrays import is_split, reduce_split_arrays


def reduce_arrays(group: ProcessGroup, arrays: Sequence[Any], op: str, what: str) -> list[Any]:
    """Bring the arrays of all processes together, each with those at its place in the others.

    Args:
      arrays: of JAX or NumPy; the same shapes and dtypes in each process.
      op: one of PyTorch's reductions, by name.
      what: the collective's name, for errors.

    Raises:
      ValueError: there is no such reduction.
      DistBackendError: a process is gone.
    """
    check_reduction(op, what)
    parted = [is_split(x) for x in arrays]
    whole = [x for x, p in zip(arrays, parted, strict=True) if not p]
    wholes = iter(_run(group, whole, op, 0, what) if whole else [])
    if len(whole) == len(arrays):
        return list(wholes)
    with jax.enable_x64(True), network_errors(what, group.size()):
        split = [x for x, p in zip(arrays, parted, strict=True) if p]
        parts = iter(reduce_split_arrays(group, split, op))
    return [next(parts if p else wholes) for p in parted]


def gather_arrays(group: ProcessGroup, arrays: Sequence[Any], what: str) -> list[Any]:
    """Stack the arrays of all processes by a first dimension, see `reduce_arrays`."""
    return _run(group, arrays, "gather", 0, what)


def broadcast_arrays(
    group: ProcessGroup, arrays: Sequence[Any], source: int, what: str
) -> list[Any]:
    """Return the arrays of one process, by its number in the group, see `reduce_arrays`."""
    return _run(group, arrays, "broadcast", source, what)


def exchange_array(group: ProcessGroup, array: Any, what: str) -> Any:
    """Return row `rank` of the array of each process, stacked: all to all."""
    return _run(group, [array], "exchange", 0, what)[0]


def scatter_array(group: ProcessGroup, array: Any, source: int, what: str) -> Any:
    """Return row `rank` of one process's array."""
    return _run(group, [array], "scatter", source, what)[0]


def reduce_scatter_array(group: ProcessGroup, array: Any, op: str, what: str) -> Any:
    """Return row `rank` of what `reduce_arrays` gives."""
    check_reduction(op, what)
    return _run(group, [array], f"scatter {op}", 0, what)[0]


def _run(group: ProcessGroup, arrays: Sequence[Any], kind: str, place: int, what: str) -> list[Any]:
    mesh = group.mesh
    with jax.enable_x64(True):
        given = tuple(_globally(mesh, x) for x in arrays)
        with network_errors(what, group.size()):
            results = finished(_program(mesh, kind, place)(given))
        return [_locally(y, x, _gives_parts(kind)) for x, y in zip(arrays, results, strict=True)]


@functools.cache
def _program(mesh: Any, kind: str, place: int) -> Any:
    whole = NamedSharding(mesh, PartitionSpec())
    by_rank = NamedSharding(mesh, PartitionSpec("rank"))
    bodies: dict[str, Callable[[Any], Any]] = {
        "gather": lambda x: x,
        "broadcast": lambda x: x[place],
        "scatter": lambda x: x[place],
        "exchange": lambda x: jnp.swapaxes(x, 0, 1),
    }
    reduced = kind.removeprefix("scatter ")
    body = bodies[kind] if kind in bodies else REDUCTIONS[reduced]

    def collective(arrays: tuple[Any, ...]) -> list[Any]:
        if kind not in REDUCTIONS or len(arrays) == 1:
            return [body(everywhere(x)) for x in arrays]
        flat = {  # one call of the network for each dtype
            dtype: iter(_split(body(everywhere(_joined(xs))), [x.shape[1:] for x in xs]))
            for dtype, xs in _by_dtype(arrays).items()
        }
        return [next(flat[x.dtype]) for x in arrays]

    def everywhere(x: Any) -> Any:
        """Bring what no network reduces, bits, to each process first."""
        if x.dtype == bool or reduced in ("BAND", "BOR", "BXOR"):
            return jax.lax.with_sharding_constraint(x, whole)
        return x

    return jax.jit(collective, out_shardings=by_rank if _gives_parts(kind) else whole)


def _gives_parts(kind: str) -> bool:
    """Tell whether each process has another part of the results."""
    return kind == "exchange" or kind.startswith("scatter")


def _by_dtype(arrays: Sequence[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for x in arrays:
        found.setdefault(x.dtype, []).append(x)
    return found


def _joined(xs: Sequence[Any]) -> Any:
    return jnp.concatenate([x.reshape((x.shape[0], -1)) for x in xs], 1)


def _split(flat: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    return [x.reshape(shape) for x, shape in zip(jnp.split(flat, ends), shapes, strict=True)]


def _globally(mesh: Any, x: Any) -> Any:
    """Return this process's array as its row of a global one."""
    local = mesh.local_mesh.devices.flat[0]
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        raise ValueError(
            "a collective takes a tensor that this process holds, and this one lies on devices of "
            "several processes: `to_local()` gives the part of this process"
        )
    if isinstance(x, jax.Array) and len(x.sharding.device_set) > 1 and x.is_fully_replicated:
        x = x.addressable_data(0)
    row = jax.device_put(x[None], local)
    sharding = NamedSharding(mesh, PartitionSpec("rank"))
    shape = (mesh.size, *x.shape)
    return jax.make_array_from_single_device_arrays(shape, sharding, [row])


def _locally(y: Any, like: Any, split: bool) -> Any:
    """Return what this process has of a result, where what it gave lies."""
    here = y.addressable_data(0)
    if split:
        here = here[0]
    if not isinstance(like, jax.Array):
        return np.asarray(here)
    if not like.committed:
        (device,) = like.sharding.device_set
        return alone(jax.device_put(here, device))
    where = like.sharding
    if like.shape != here.shape and isinstance(where, NamedSharding):
        where = NamedSharding(where.mesh, PartitionSpec())
    return jax.device_put(here, where)
