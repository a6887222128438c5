"""`torch.backends.cudnn`: XLA uses cuDNN by itself where there is a GPU; precision is a switch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .._core.dtypes import float16, float32, float64
from ._float32_precision import (
    FP32Precision,
    get_cudnn_allow_tf32,
    get_fp32_precision,
    set_cudnn_allow_tf32,
    set_fp32_precision,
)
from ._module_properties import give_properties
from ._switches import exchange

CUDNN_TENSOR_DTYPES = {float16, float32, float64}
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
depthwise_kernel = "auto"
conv = FP32Precision("cuda", "conv")
rnn = FP32Precision("cuda", "rnn")
if TYPE_CHECKING:
    allow_tf32: bool
    fp32_precision: str
give_properties(
    __name__,
    allow_tf32=(get_cudnn_allow_tf32, set_cudnn_allow_tf32),
    fp32_precision=(
        partial(get_fp32_precision, "cuda", "all"),
        partial(set_fp32_precision, "cuda", "all"),
    ),
)


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
    before = get_cudnn_allow_tf32(), get_fp32_precision("cuda", "all")
    on, tries, limit, same, depthwise = exchange(
        globals(), enabled=_enabled, benchmark=_benchmark, benchmark_limit=_benchmark_limit,
        deterministic=_deterministic, depthwise_kernel=_depthwise_kernel,
    )  # fmt: skip
    if _allow_tf32 is not None:
        set_cudnn_allow_tf32(_allow_tf32)
    if _fp32_precision is not None:
        set_fp32_precision("cuda", "all", _fp32_precision)
    return on, tries, limit, same, *before, depthwise


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
