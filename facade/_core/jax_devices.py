"""The devices of JAX that PyTorch's devices stand for."""

from __future__ import annotations

from typing import Any

import jax

_BACKENDS = {"cuda": ("gpu", "cuda", "rocm"), "cpu": ("cpu",), "tpu": ("tpu",)}


def jax_device(where: Any) -> Any:
    """Return the JAX device behind a PyTorch device.

    Args:
      where: a `torch.device`; without a number, the first of its type.

    Raises:
      RuntimeError: JAX has no such device in this process.
    """
    for backend in _BACKENDS.get(where.type, (where.type,)):
        try:
            found = jax.local_devices(backend=backend)
        except RuntimeError:
            continue
        if (where.index or 0) < len(found):
            return found[where.index or 0]
    raise RuntimeError(f"no device of type {where} is available to JAX on this machine")


def list_gpus() -> list[Any]:
    """List the GPUs that JAX has in this process."""
    for backend in ("cuda", "rocm"):
        try:
            return list(jax.local_devices(backend=backend))
        except RuntimeError:
            continue
    return []
