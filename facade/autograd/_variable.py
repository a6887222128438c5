"""`autograd.Variable`, from before tensors could require gradients themselves."""

from __future__ import annotations

import warnings
from typing import Any

from .._handle import Handle


class _VariableMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Handle)


class Variable(metaclass=_VariableMeta):
    """Returns a tensor on the same data; `volatile` is ignored with a warning, as in PyTorch."""

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            if volatile:
                warnings.warn(
                    "volatile was removed (Variable.volatile is always False)",
                    UserWarning,
                    stacklevel=2,
                )
        if not isinstance(data, Handle):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(data).__name__}"
            )
        out = data.detach()  # type: ignore[attr-defined]
        return out.requires_grad_() if requires_grad else out
