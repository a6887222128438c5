"""PyTorch's `torch.ao.quantization`: names to import; there are no quantized tensors."""

from __future__ import annotations

from typing import Any

from ..._core.absent.stand_ins import refuse, refuse_class
from ...nn.modules.module import Module

__all__ = [
    "DeQuantStub", "FakeQuantize", "ObserverBase", "QConfig", "QuantStub", "convert",
    "fuse_modules", "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat",
    "quantize", "quantize_dynamic",
]  # fmt: skip

_NONE = "there are no quantized tensors"
prepare = refuse("ao.quantization.prepare", _NONE)
prepare_qat = refuse("ao.quantization.prepare_qat", _NONE)
convert = refuse("ao.quantization.convert", _NONE)
quantize = refuse("ao.quantization.quantize", _NONE)
quantize_dynamic = refuse("ao.quantization.quantize_dynamic", _NONE)
fuse_modules = refuse("ao.quantization.fuse_modules", _NONE)
fuse_modules_qat = refuse("ao.quantization.fuse_modules_qat", _NONE)
get_default_qconfig = refuse("ao.quantization.get_default_qconfig", _NONE)
get_default_qat_qconfig = refuse("ao.quantization.get_default_qat_qconfig", _NONE)
QConfig = refuse_class("ao.quantization.QConfig", _NONE)
ObserverBase = refuse_class("ao.quantization.ObserverBase", _NONE, Module)
FakeQuantize = refuse_class("ao.quantization.FakeQuantize", _NONE, Module)


class QuantStub(Module):
    """Return what it is given, as PyTorch's does until a model is converted.

    Args:
      qconfig: kept as an attribute.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """Return the argument."""
        return x


class DeQuantStub(QuantStub):
    """Return what it is given, as PyTorch's does until a model is converted."""
