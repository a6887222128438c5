"""PyTorch's `torch.onnx.utils`."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse

_JAX = "`leafax.functional.lower` exports what was recorded as a JAX function"
export = refuse("onnx.export", _JAX)


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported to ONNX."""
    return False
