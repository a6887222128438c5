"""`torch.backends.mkldnn`: oneDNN's switches; XLA has kernels of its own, of full precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ._float32_precision import FP32Precision, get_fp32_precision, set_fp32_precision
from ._module_properties import give_properties
from ._switches import exchange

enabled = True
deterministic = False
allow_tf32: bool | None = None
matmul = FP32Precision("mkldnn", "matmul")
conv = FP32Precision("mkldnn", "conv")
rnn = FP32Precision("mkldnn", "rnn")
if TYPE_CHECKING:
    fp32_precision: str
give_properties(
    __name__,
    fp32_precision=(
        partial(get_fp32_precision, "mkldnn", "all"),
        partial(set_fp32_precision, "generic", "all"),  # as PyTorch has it
    ),
)


def is_available() -> bool:
    """Return False: leafax computes without it."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str | None = "none",
) -> tuple[Any, ...]:  # fmt: skip
    """Set the switches that are not None, and return what all were."""
    before = get_fp32_precision("mkldnn", "all")
    told = exchange(
        globals(), enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32
    )
    if _fp32_precision is not None:
        set_fp32_precision("mkldnn", "all", _fp32_precision)
    return *told, before


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
