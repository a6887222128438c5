"""Writing to what is read only (`x.shape = 3`), refused in PyTorch's words."""

from __future__ import annotations

from typing import Any


def protect(cls: Any) -> None:
    """Give read-only properties of a class and its bases a setter that raises PyTorch's error."""
    for part in cls.__mro__:
        for name, made in list(vars(part).items()):
            if isinstance(made, property) and made.fset is None:
                setattr(part, name, made.setter(_refuse(name)))


def _refuse(name: str) -> Any:
    def put(self: Any, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return put
