"""PyTorch's `torch.linalg`: linear algebra on batches of matrices."""

from __future__ import annotations

from leafax.functional.ops.linalg.linalg import LinAlgError as LinAlgError

from ._ops.autocast.casts import product as _product
from ._ops.calls.functions import in_namespace as _in_namespace
from ._ops.composites.lstsq import ranked as _ranked
from ._ops.composites.matmul import linalg_matmul as _linalg_matmul

_made = _in_namespace("linalg")
_made["pinv"] = _product(_made["pinv"])
_made["lstsq"] = _ranked(_made["lstsq"])
_made["matmul"] = _linalg_matmul
globals().update(_made)

__all__ = ["LinAlgError", *_made]
