"""`safetensors.torch` reads memory at addresses, which tensors here have none of: it gets arrays.

With a number that stands for an address it would end the process.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from .._tensor.tensor import Tensor
from .when_imported import when_imported


def _read_tensors(module: ModuleType) -> None:
    known: Any = getattr(module, "_to_ndarray", None)
    if known is None:  # another version
        return

    def to_ndarray(tensor: Any) -> tuple[np.ndarray, Any]:
        if not isinstance(tensor, Tensor):
            return known(tensor)  # type: ignore[no-any-return]
        array = np.ascontiguousarray(tensor.detach().numpy())
        return array.reshape(-1).view(np.uint8), tensor

    module._to_ndarray = to_ndarray  # type: ignore[attr-defined]


def watch() -> None:
    """Make `safetensors.torch` take leafax's tensors, now or when it is imported."""
    when_imported("safetensors.torch", _read_tensors)
