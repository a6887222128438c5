"""The classes of graph nodes by name: `isinstance(y.grad_fn, torch._C._functions.MulBackward0)`."""

from __future__ import annotations

from typing import Any

from .._autograd.graph.accumulate_grad import AccumulateGrad as AccumulateGrad
from .._autograd.graph.delayed_error import DelayedError as DelayedError
from .._autograd.graph.delayed_error import Error as Error
from .._autograd.graph.delayed_error import UndefinedGrad as UndefinedGrad
from .._autograd.graph.delayed_error import UndefinedGradBackward as UndefinedGradBackward
from .._autograd.graph.edges import node_class


def __getattr__(name: str) -> Any:
    if name in ("CopySlices", "CopyBackwards") or name.rstrip("0123456789").endswith("Backward"):
        return node_class(name)
    raise AttributeError(f"module 'torch._C._functions' has no attribute '{name}'")
