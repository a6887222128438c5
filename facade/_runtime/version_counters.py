"""Version counters of tensors that are set by hand, and kept over a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.grad_modes import Scope
from .._core.handle import Handle
from .cut import cut


def set_versions(tensors: Sequence[Any], versions: Sequence[int]) -> None:
    """Give each tensor's version counter a value; a write may so be hidden from autograd.

    What is pending runs first. A gradient reads what was saved, not what was written since.

    Raises:
      RuntimeError: for lists of different lengths and for values below 0.
    """
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    cut("a version counter that is set")
    for t, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        if t._vc is None:
            t._vc = [0]
        t._vc[0] = int(version)


class _unsafe_preserve_version_counter(Scope):
    """Hide the writes of a block from the version counters of tensors."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Handle) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        set_versions(self.tensors, self.prev_versions)

    def _copy(self) -> Scope:
        return type(self)(self.tensors)


_unsafe_preserve_version_counter.__module__ = "leafax.autograd.grad_mode"
