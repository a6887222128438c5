"""`torch.backends.cpu`: what the processor can do."""

import jax


def get_cpu_capability() -> str:
    """Return what JAX calls the processor's kind."""
    return str(jax.local_devices(backend="cpu")[0].device_kind)
