"""The kernels that may compute attention, as PyTorch programs choose; XLA chooses its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any


class SDPBackend(IntEnum):
    """Name the kernels of `scaled_dot_product_attention` that PyTorch has."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


_ALL = (
    SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH, SDPBackend.OVERRIDEABLE,
)  # fmt: skip


class _Allowed(threading.local):
    backends: tuple[SDPBackend, ...] = _ALL


_allowed = _Allowed()


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    if with_priority:
        return list(_allowed.backends)
    return [x for x in _ALL if x in _allowed.backends]


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[Any, Any]]:
    """Allow only some kernels within the block; it is remembered, and XLA chooses by itself.

    Args:
      backends: one, or a list.
      set_priority: those before others are tried first.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    before = _allowed.backends
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    _allowed.backends = tuple(dict.fromkeys(chosen))
    try:
        yield {}
    finally:
        _allowed.backends = before


SDPBackend.__module__ = sdpa_kernel.__module__ = "leafax.nn.attention"
