"""tensorboardX's writers take leafax's tensors: it knows those of others by their names."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .._tensor.tensor import Tensor
from .when_imported import when_imported


def _take_tensors(module: ModuleType) -> None:
    known: Any = getattr(module, "make_np", None)
    if known is None:  # another version
        return

    def make_np(x: Any) -> Any:
        return known(x.detach().numpy() if isinstance(x, Tensor) else x)

    for name, other in list(sys.modules.items()):
        if name.startswith("tensorboardX") and getattr(other, "make_np", None) is known:
            other.make_np = make_np  # type: ignore[attr-defined]
    module.make_np = make_np  # type: ignore[attr-defined]


def watch() -> None:
    """Make tensorboardX take leafax's tensors, now or when it is imported."""
    when_imported("tensorboardX.x2num", _take_tensors)
