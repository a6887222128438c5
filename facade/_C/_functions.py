"""The classes of graph nodes by name: `isinstance(y.grad_fn, torch._C._functions.MulBackward0)`."""

from __future__ import annotations

from typing import Any

from .._accumulate import AccumulateGrad as AccumulateGrad
from .._graph import node_class
from ..autograd._delayed import DelayedError as DelayedError
from ..autograd._delayed import Error as Error
from ..autograd._delayed import UndefinedGrad as UndefinedGrad
from ..autograd._delayed import UndefinedGradBackward as UndefinedGradBackward


def __getattr__(name: str) -> Any:
    if name in ("CopySlices", "CopyBackwards") or name.rstrip("0123456789").endswith("Backward"):
        return node_class(name)
    raise AttributeError(f"module 'torch._C._functions' has no attribute '{name}'")
