"""PyTorch's `torch.utils._contextlib`: blocks of packages that decorate functions, too."""

from __future__ import annotations

from typing import Any

from .._core.grad_modes import Scope


class _DecoratorContextManager(Scope):
    """A block that also decorates functions and generator functions.

    A class whose `__init__` takes arguments says by its own `clone` how to make another.
    """

    def _copy(self) -> Scope:
        return self.clone()

    def clone(self) -> Scope:
        """Return another block of the same kind, made without arguments."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A block without arguments, so that it decorates without being called, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        """Make a block, or decorate a function with one."""
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
