"""Tensors whose memory a graph of kernels owns: PyTorch only remembers which they are."""

from __future__ import annotations

from typing import Any
from weakref import ref

_enabled = False
_cached: dict[int, ref[Any]] = {}  # by id, as long as the tensor lives


def set_enabled(enabled: bool) -> None:
    """Switch the cache, as `torch._C._set_cached_tensors_enabled`; off, no tensor counts."""
    global _enabled
    _enabled = enabled


def add(tensor: Any) -> None:
    """Add a tensor to the cache, as `torch._C._add_cached_tensor`; once is enough."""
    _require()
    key = id(tensor)
    _cached[key] = ref(tensor, lambda gone: _cached.pop(key, None))


def remove(tensor: Any) -> None:
    """Remove a tensor, as `torch._C._remove_cached_tensor`; an unknown one is no error."""
    _require()
    _cached.pop(id(tensor), None)


def is_cached(tensor: Any) -> bool:
    """Return whether a tensor counts as cached, as `torch._C._is_cached_tensor`."""
    return _enabled and id(tensor) in _cached


def _require() -> None:
    if not _enabled:
        raise RuntimeError(_OFF)


_OFF = "cached tensors are not enabled"
