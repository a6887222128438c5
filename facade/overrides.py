"""PyTorch's `torch.overrides`: `__torch_function__`, of arguments and of modes."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._api import overridable as _overridable
from ._api import override_calls as _override_calls  # noqa: F401  # it makes functions look
from ._core.overrides import state as _torch_function
from ._core.overrides.modes import BaseTorchFunctionMode as BaseTorchFunctionMode
from ._core.overrides.modes import TorchFunctionMode as TorchFunctionMode
from ._core.overrides.modes import _get_current_function_mode as _get_current_function_mode
from ._core.overrides.modes import (
    _get_current_function_mode_stack as _get_current_function_mode_stack,
)
from ._core.overrides.modes import _len_torch_function_stack as _len_torch_function_stack
from ._core.overrides.modes import _pop_mode as _pop_mode
from ._core.overrides.modes import _pop_mode_temporarily as _pop_mode_temporarily
from ._core.overrides.modes import _push_mode as _push_mode
from ._core.overrides.state import ENABLED as _ENABLED
from ._core.overrides.state import SKIP_ONE as _SKIP_ONE
from ._core.overrides.state import ask as _ask
from ._core.overrides.state import overrides as _overrides
from ._tensor.subclass_methods import get_default_nowrap_functions as get_default_nowrap_functions
from ._tensor.tensor import Tensor as _Tensor

__all__ = [
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "resolve_name", "is_tensor_like",
    "is_tensor_method_or_property", "wrap_torch_function", "enable_reentrant_dispatch",
    "redispatch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Tell whether one of the arguments overrides functions, or a mode does."""
    if not _torch_function.takes_overrides():
        return False
    if _overrides.modes:
        return True
    return not _overrides.off and any(_torch_function.is_overriding(type(a)) for a in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """Tell whether an argument overrides functions, or a mode does."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Tell whether one of the arguments overrides functions, or a mode does."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call what the mode or one of the relevant arguments puts in a function's place.

    Raises:
      TypeError: all of them returned NotImplemented.

    >>> from leafax.overrides import handle_torch_function, has_torch_function_unary
    >>> def double(x):
    ...     if has_torch_function_unary(x):
    ...         return handle_torch_function(double, (x,), x)
    ...     return x + x
    """
    found = _get_overloaded_args(relevant_args)
    for x in found:
        method = x.__torch_function__
        if getattr(method, "__self__", None) is x:
            warnings.warn(
                "Defining your `__torch_function__ as a plain method is deprecated and "
                "will be an error in future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
    made = _ask(public_api, found, args, kwargs)
    if made is not NotImplemented:
        return made
    text = (
        f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types "
        f"that implement __torch_function__: {[type(x) for x in found]}"
    )
    if _overrides.modes:
        text += f" nor in mode {_get_current_function_mode()}"
    raise TypeError(text)


def _get_overloaded_args(relevant_args: Iterable[Any]) -> list[Any]:
    return _torch_function.overloaded(relevant_args, _Tensor)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Return a decorator that makes a function one that `__torch_function__` can override.

    Args:
      dispatcher: takes the function's arguments and returns those that may override it.
    """

    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(inp: Any) -> bool:
    """Tell whether an object is a tensor or has `__torch_function__`."""
    return type(inp) is _Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Tell whether a function is a method of tensors, or reads one of their attributes."""
    return func in get_overridable_functions()[_Tensor] or func.__name__ == "__get__"


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that can be overridden, by namespace."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    spaces = dict(_overridable.namespaces())
    for f in _overridable.functions():
        if f.required:
            found.setdefault(
                spaces[f.name.rpartition(".")[0].replace("torch.functional", "torch")], []
            ).append(f.function)
    for f in _overridable.methods():
        if f.required:
            attribute = f.name.endswith(".__get__")
            found.setdefault(_Tensor, []).append(f.public if attribute else f.function)
    return found


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return public functions that `__torch_function__` of arguments need not override."""
    found = {f.function for f in _overridable.functions() if not f.required}
    for _, module in _overridable.namespaces():
        here = vars(module)
        found |= {here[n] for n in _overridable.NEVER if callable(here.get(n))}
    for name in _overridable.NO_METHODS:
        if callable(method := getattr(_Tensor, name, None)):
            found.add(method)
    return found


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return for each function that can be overridden one that takes the same and returns -1."""
    return {f: _returns_minus_one(f) for fs in get_overridable_functions().values() for f in fs}


def _returns_minus_one(fn: Callable[..., Any]) -> Callable[..., Any]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    return functools.wraps(fn)(override) if hasattr(fn, "__code__") else override


def resolve_name(f: Any) -> str | None:
    """Return PyTorch's name of a function that `__torch_function__` was told, None if unknown."""
    return _overridable.names().get(f)


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    before, _overrides.off = _overrides.off, _ENABLED
    try:
        yield
    finally:
        _overrides.off = before


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Do nothing for a block: dispatch is reentrant."""
    yield


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function as it is, while what it calls may be overridden again."""
    before, _overrides.off = _overrides.off, _SKIP_ONE
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _overrides.off = before
