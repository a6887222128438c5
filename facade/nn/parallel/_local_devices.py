"""Modules and batches on several devices of this process."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ..._core.handle import Handle
from ..._core.trie import local
from ..._dispatch.jax_call import call_jax
from ..._runtime.observation import observe
from ..._runtime.placing import place_all, sharding_of
from ..._tracing.inputs import from_array


@functools.lru_cache(maxsize=64)
def mesh_of(devices: tuple[Any, ...]) -> Mesh:
    """Return a mesh of these devices, along an axis `batch`."""
    return jax.make_mesh((len(devices),), ("batch",), (AxisType.Auto,), devices=devices)


def free_devices(module: Any) -> tuple[Any, ...]:
    """List the devices that a module may be spread over: none if something said where it is."""
    for t in (*module.parameters(), *module.buffers()):
        if sharding_of(t) is not None or t._v.device is not None:
            return ()
    return tuple(jax.local_devices())


def place_everywhere(module: Any, mesh: Mesh) -> None:
    """Place a module's parameters and buffers whole on each device."""
    whole = NamedSharding(mesh, PartitionSpec())
    place_all([(t, whole) for t in (*module.parameters(), *module.buffers())])


def split_batch(inputs: Any, mesh: Mesh, dim: int = 0, axes: tuple[str, ...] = ("batch",)) -> Any:
    """Split the tensors in `inputs` over the devices, along `dim` if their number divides it.

    Args:
      inputs: a tensor, or tuples, lists and dicts of anything.
      mesh: the devices.
      dim: of the batch.
      axes: of the mesh, those that split it.

    Returns:
      The same, where other tensors lie as they did.
    """
    parts = math.prod(mesh.shape[a] for a in axes)

    def split(t: Any) -> Any:
        if not -t.dim() <= dim < t.dim() or t.shape[dim] == 0 or t.shape[dim] % parts:
            return t
        spec = PartitionSpec(*[None] * (dim % t.dim()), axes)
        return _split(t, NamedSharding(mesh, spec))

    return map_tensors(split, inputs)


def map_tensors(fn: Callable[[Any], Any], x: Any) -> Any:
    """Replace the tensors in tuples, lists and dicts by what a function makes of each."""
    if isinstance(x, Handle):
        return fn(x)
    if isinstance(x, dict):
        return type(x)((k, map_tensors(fn, v)) for k, v in x.items())
    if isinstance(x, (tuple, list)):
        items = [map_tensors(fn, v) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


_constraints: dict[NamedSharding, Callable[[Any], Any]] = {}  # the same function for the same steps


def _split(t: Any, sharding: NamedSharding) -> Any:
    at_rest = t._array is not None and t._trace is None
    if at_rest and getattr(t._array, "sharding", None) == sharding:
        return t
    if at_rest and not (t.requires_grad and local.mode.grad):
        with jax.enable_x64(True):
            return from_array(jax.device_put(observe(t, "jax()"), sharding))
    constrain = _constraints.get(sharding)
    if constrain is None:

        def constrain(x: Any) -> Any:
            return jax.lax.with_sharding_constraint(x, sharding)

        _constraints[sharding] = constrain
    return call_jax(constrain, t)
