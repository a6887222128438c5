"""Modes that see every call of a public function in a `with` block."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .state import activate, overrides


class TorchFunctionMode:
    """A block in which `__torch_function__` of this object is asked before each public function.

    Derived classes define `__torch_function__(self, func, types, args=(), kwargs=None)`; in it the
    mode is not in force.

    >>> import leafax as torch
    >>> class Log(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     x = torch.ones(2) + 1
    torch.ones
    torch.Tensor.add
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(  # noqa: PLW3201
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a mode, which warns: a `with` block takes the class's object itself."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(  # noqa: PLW3201
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: Any) -> None:
    activate()
    overrides.modes.append(mode)


def _pop_mode() -> Any:
    return overrides.modes.pop()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def _get_current_function_mode() -> Any:
    return overrides.modes[-1] if overrides.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(overrides.modes)


def _len_torch_function_stack() -> int:
    return len(overrides.modes)
