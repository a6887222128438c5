"""`torch.backends.mkldnn`: oneDNN's switches are kept; XLA has kernels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._switches import Switches, exchange

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"
matmul = Switches(fp32_precision="none")
conv = Switches(fp32_precision="none")
rnn = Switches(fp32_precision="none")


def is_available() -> bool:
    """Return False: leafax computes without it."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str | None = "none",
) -> tuple[Any, ...]:  # fmt: skip
    """Set the switches that are not None, and return what all were."""
    return exchange(
        globals(), enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
    )  # fmt: skip


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:  # fmt: skip
    """Set the switches within the block."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
