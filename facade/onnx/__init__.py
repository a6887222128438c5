"""PyTorch's `torch.onnx`: names that packages register with; exporting is refused."""

from __future__ import annotations

import enum
from typing import Any

from .._core.absent.stand_ins import do_nothing as register_custom_op_symbolic
from .._core.absent.stand_ins import do_nothing as unregister_custom_op_symbolic
from .._core.absent.stand_ins import refuse_class
from .._install.metadata import VERSION as _VERSION
from . import errors as errors
from . import symbolic_helper as symbolic_helper
from . import symbolic_opset9 as symbolic_opset9
from . import symbolic_opset10 as symbolic_opset10
from . import symbolic_opset11 as symbolic_opset11
from . import utils as utils
from .errors import OnnxExporterError as OnnxExporterError
from .utils import _JAX
from .utils import export as export
from .utils import is_in_onnx_export as is_in_onnx_export

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "errors", "export",
    "is_in_onnx_export", "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset10",
    "symbolic_opset11", "symbolic_opset9", "unregister_custom_op_symbolic", "utils",
]  # fmt: skip

producer_name, producer_version = "pytorch", _VERSION

ONNXProgram = refuse_class("onnx.ONNXProgram", _JAX)


class TrainingMode(enum.Enum):
    """The mode that a model is exported in."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """The ops that an exported model may have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def __getattr__(name: str) -> Any:
    if name.startswith("symbolic_opset"):
        return symbolic_opset11  # no opset has symbolic functions
    raise AttributeError(f"module 'leafax.onnx' has no attribute '{name}'")
