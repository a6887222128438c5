"""`torch.backends.opt_einsum`: in which order `einsum` multiplies."""

from __future__ import annotations

enabled = True
strategy: str | None = "auto"


def is_available() -> bool:
    """Return True: JAX needs opt_einsum, so it is there."""
    return True
