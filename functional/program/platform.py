"""The platform that an op is compiled for: its body may choose by that how it is computed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from .meta import META


class _Traced(threading.local):
    """Hold what the thread traces for.

    Attributes:
      platform: None is that of JAX's default device.
    """

    platform: str | None = None


_traced = _Traced()


def where_data_are_made() -> Any:
    """Return the device of JAX where arrays are made that are asked for nowhere in particular."""
    found = jax.config.jax_default_device or jax.local_devices()[0]  # type: ignore[attr-defined]
    return jax.local_devices(backend=found)[0] if isinstance(found, str) else found


def platform() -> str:
    """Return the platform of what is traced now, as JAX names it: "cpu", "gpu", "tpu"."""
    if _traced.platform is not None:
        return _traced.platform
    return str(where_data_are_made().platform)


def platform_of(avals: Iterable[Any]) -> str | None:
    """Return the platform of what values are committed to; None if that is nowhere."""
    for aval in avals:
        where = aval.device
        if where is not None and where is not META:
            return str((where[0] if isinstance(where, tuple) else where).platform)
    return None


@contextmanager
def traced_for(wanted: str | None) -> Iterator[None]:
    """Trace for a platform in the block; None is that of JAX's default device."""
    before, _traced.platform = _traced.platform, wanted
    try:
        yield
    finally:
        _traced.platform = before
