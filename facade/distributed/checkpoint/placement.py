"""Arrays on their way to a checkpoint and back: out of training's reach, then where they belong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

_HOST = "pinned_host"


def copied_to_host(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Copy arrays into the memory of their hosts, each as it is sharded.

    The copies are ordered before whatever is computed next, so the buffers may be donated at once:
    a step finds nobody who holds them, and is the one that is compiled already.
    """
    with jax.enable_x64(True):
        return {
            name: _host_copy(x) if isinstance(x, jax.Array) else x for name, x in arrays.items()
        }


def _host_copy(x: jax.Array) -> jax.Array:
    device: Any = next(iter(x.sharding.addressable_devices))
    if all(memory.kind != _HOST for memory in device.addressable_memories()):
        return jnp.copy(x)
    return jax.device_put(x, x.sharding.with_memory_kind(_HOST))


def restore_args(found: Mapping[str, Any], homes: Mapping[str, Sharding]) -> Any:
    """Return orbax's arguments that read each array by the parts which its devices need.

    Args:
      found: the metadata of the checkpoint's arrays, by name.
      homes: where arrays go that lie on given devices.
    """
    import orbax.checkpoint as ocp

    return {
        name: ocp.ArrayRestoreArgs(sharding=homes[name], strict=True)
        if name in homes and _read_in_parts(found[name], homes[name])
        else ocp.RestoreArgs(restore_type=np.ndarray)
        for name in found
    }


def _read_in_parts(found: Any, home: Sharding) -> bool:
    # The threads of orbax make arrays without 64-bit types: those are read whole.
    return len(home.device_set) > 1 and np.dtype(found.dtype).itemsize < 8


def placed(arrays: Mapping[str, Any], homes: Mapping[str, Sharding]) -> dict[str, jax.Array]:
    """Put what was read where it goes: without a home, to JAX's default device."""
    with jax.enable_x64(True):
        return {
            name: x
            if isinstance(x, jax.Array)
            else jax.device_put(x, homes[name])
            if name in homes
            else jnp.array(x)
            for name, x in arrays.items()
        }


def homes_of(found: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Sharding]:
    """Find where a checkpoint's arrays belong: where the array of that name lies.

    Args:
      found: the metadata of the checkpoint's arrays, by name.
      now: arrays by name.

    Returns:
      Shardings by name, of arrays that were put on devices by somebody.
    """
    return {
        name: now[name].sharding
        for name, meta in found.items()
        if isinstance(now.get(name), jax.Array)
        and now[name].committed
        and now[name].shape == tuple(meta.shape)
    }
