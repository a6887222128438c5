"""`torch.backends.cudnn`: XLA uses cuDNN by itself where there is a GPU; its switches are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._core.dtypes import float16, float32, float64
from ._switches import Switches, exchange

CUDNN_TENSOR_DTYPES = {float16, float32, float64}
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"
conv = Switches(fp32_precision="tf32")
rnn = Switches(fp32_precision="tf32")


def is_available() -> bool:
    """Return False: what XLA uses of cuDNN is its own affair."""
    return False


def version() -> int | None:
    """None: XLA brings its own."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False, as without cuDNN."""
    return False


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None,
    _benchmark_limit: int | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str | None = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Set the switches that are not None, and return what all were."""
    return exchange(
        globals(), enabled=_enabled, benchmark=_benchmark, benchmark_limit=_benchmark_limit,
        deterministic=_deterministic, allow_tf32=_allow_tf32, fp32_precision=_fp32_precision,
        depthwise_kernel=_depthwise_kernel,
    )  # fmt: skip


@contextmanager
def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10,
    deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:  # fmt: skip
    """Set the switches within the block."""
    before = set_flags(
        enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision,
        depthwise_kernel,
    )  # fmt: skip
    try:
        yield
    finally:
        set_flags(*before)
