"""Arrays on their way to a checkpoint and back: out of training's reach, then where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

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


def restore_args(found: Mapping[str, Any], homes: Mapping[str, jax.sharding.Sharding]) -> Any:
    """Return orbax's arguments that read each array by the parts which its devices need.

    Args:
      found: the metadata of the checkpoint's arrays, by name.
      homes: where arrays go that lie on given devices.
    """
    return {
        name: ocp.ArrayRestoreArgs(sharding=homes[name], strict=True)
        if name in homes and _read_in_parts(found[name], homes[name])
        else ocp.RestoreArgs(restore_type=np.ndarray)
        for name in found
    }


def _read_in_parts(found: Any, home: jax.sharding.Sharding) -> bool:
    # The threads of orbax make arrays without 64-bit types: those are read whole.
    return len(home.device_set) > 1 and np.dtype(found.dtype).itemsize < 8


def placed(
    arrays: Mapping[str, Any], homes: Mapping[str, jax.sharding.Sharding]
) -> dict[str, jax.Array]:
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


def homes_of(
    found: Mapping[str, Any], now: Mapping[str, Any], optimizers: Mapping[str, Iterable[Any]]
) -> dict[str, jax.sharding.Sharding]:
    """Find where a checkpoint's arrays belong: where the run's array of that name lies.

    State that an optimizer has not made yet goes to where its parameter is.

    Args:
      found: the metadata of the checkpoint's arrays, by name.
      now: the run's arrays.
      optimizers: parameters in the order of their numbers, by the optimizer's name.

    Returns:
      Shardings by name, of arrays that were put on devices by somebody.
    """
    candidates = dict(now)
    for prefix, parameters in optimizers.items():
        numbered = {str(n): p.detach().jax() for n, p in enumerate(parameters)}
        for name in found:
            part, _, rest = name.removeprefix(f"{prefix}/").partition("/")
            n = rest.partition("/")[0]
            if name.startswith(f"{prefix}/state/") and part == "state" and n in numbered:
                candidates.setdefault(name, numbered[n])
    return {
        name: candidates[name].sharding
        for name, meta in found.items()
        if isinstance(candidates.get(name), jax.Array)
        and candidates[name].committed
        and candidates[name].shape == tuple(meta.shape)
    }
