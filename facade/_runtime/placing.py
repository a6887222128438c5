"""Tensors on several devices: placing their data, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from leafax.functional.execution.several_devices import is_spread, several

from .._tracing.inputs import from_array
from .observation import observe

#: Optimizers that are alive: `follow` places what stands beside parameters, given by id.
followers: WeakSet[Any] = WeakSet()


def shortened(spec: PartitionSpec) -> PartitionSpec:
    """Return a spec without the dimensions at its end that nothing splits, as XLA returns it."""
    entries = [*spec]
    while entries and entries[-1] in (None, ()):
        entries.pop()
    return PartitionSpec(*entries)


def in_auto_mode(sharding: Any) -> Any:
    """Return a sharding over a mesh whose axes XLA fills in, as leafax's programs need."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    mesh = sharding.mesh
    if not isinstance(mesh, Mesh) or all(kind is AxisType.Auto for kind in mesh.axis_types):
        return sharding
    auto = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * mesh.devices.ndim)
    return NamedSharding(auto, sharding.spec, memory_kind=sharding.memory_kind)


def as_spread(array: Any) -> Any:
    """Return a JAX array as a tensor may hold it: over a mesh in automatic mode, noted as such."""
    if not is_spread(array):
        return array
    several[:] = [True]
    sharding = in_auto_mode(array.sharding)
    return array if sharding is array.sharding else jax.device_put(array, sharding)


def sharding_of(t: Any) -> Any:
    """Return the sharding of a tensor that lies on several devices; None for any other."""
    array = t._array if t._store is None or t._array is not None else t._store.cell._array
    return array.sharding if is_spread(array) else None


def place(t: Any, sharding: Any) -> None:
    """Bring a tensor's data, and its gradient, to where a sharding says; it stays the same tensor.

    Its buffer is a new one, which a step may write over, except where it lay there before.
    """
    several[:] = [True]
    sharding = in_auto_mode(sharding)
    _put(t, sharding)
    if t._grad is not None:
        _put(t._grad, sharding)


def _put(t: Any, sharding: Any) -> None:
    array = observe(t, "jax()")
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return
    with jax.enable_x64(True):
        t.data = from_array(jax.device_put(array, sharding, may_alias=False))


def place_all(placed: Iterable[tuple[Any, Any]]) -> None:
    """Place tensors by their shardings, and have the optimizers' state follow."""
    moved = {}
    for t, sharding in placed:
        place(t, sharding)
        moved[id(t)] = t
    for follower in list(followers):
        follower.follow(moved)


def place_beside(p: Any, t: Any) -> Any:
    """Return a tensor that belongs to a parameter where the parameter lies.

    One of its shape lies as it does. Of another the dimensions that are as long as the parameter's
    are split as those; what has no such dimension lies whole on each device.
    """
    where = sharding_of(p) if several else None
    if not isinstance(where, NamedSharding):
        return t
    spec, shape = [*where.spec], tuple(t.shape)
    spec += [None] * (len(p.shape) - len(spec))
    if len(shape) != len(spec):
        spec = []
    kept = [s if n == m else None for s, n, m in zip(spec, shape, p.shape, strict=False)]
    _put(t, NamedSharding(where.mesh, shortened(PartitionSpec(*kept))))
    return t
