"""PyTorch's `torch._jit_internal`: marks that TorchScript reads; functions stay as they are."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ._core.absent.stand_ins import Block, leave
from ._core.absent.stand_ins import leave as _overload
from ._core.absent.stand_ins import leave as _overload_method
from ._core.absent.stand_ins import leave as export
from ._core.absent.stand_ins import leave as unused
from .futures import Future as Future

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "Future",
    "_IgnoreContextManager", "_copy_to_script_wrapper", "_drop", "_isinstance", "_overload",
    "_overload_method", "boolean_dispatch", "export", "ignore", "is_scripting", "unused",
]  # fmt: skip

_copy_to_script_wrapper = _drop = leave

T = TypeVar("T")


class _BroadcastingList:
    """Stand in annotations for a number or a list of numbers."""

    def __getitem__(self, types: Any) -> None:
        """Accept the type of the elements."""


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList1
BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def is_scripting() -> bool:
    """Return False: Python itself runs all functions."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function as it is, or a decorator that does so."""
    return leave(drop if callable(drop) else None)


class _IgnoreContextManager(Block):
    """A block that TorchScript leaves to Python."""

    def __init__(self, **kwargs: Any) -> None:
        pass


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable[..., T],
    if_false: Callable[..., T], module_name: str | None = None, func_name: str | None = None,
) -> Callable[..., T]:  # fmt: skip
    """Make a function that calls one of two, as an argument says.

    Args:
      arg_name, arg_index, default: the argument's name, its place and what it is if not given.
      if_true, if_false: the two functions.
      module_name, func_name: what the made function is named.
    """

    @functools.wraps(if_true)
    def dispatched(*args: Any, **kwargs: Any) -> T:
        given = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if given else if_false)(*args, **kwargs)

    if module_name is not None:
        dispatched.__module__ = module_name
    if func_name is not None:
        dispatched.__name__ = func_name
    return dispatched


def _isinstance(obj: Any, target_type: Any) -> bool:
    """Tell whether an object has a type that is written as an annotation: `list[int]`, say."""
    if isinstance(target_type, tuple):
        return any(_isinstance(obj, each) for each in target_type)
    origin: Any = typing.get_origin(target_type)
    inner = typing.get_args(target_type)
    if origin is None:
        return isinstance(obj, target_type)
    if not isinstance(origin, type) or origin.__name__ == "UnionType":  # Optional and Union
        return any(_isinstance(obj, each) for each in inner)
    if not isinstance(obj, origin):
        return False
    return _are_inside(obj, origin, inner)


def _are_inside(obj: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    """Tell whether the elements of a container have the types that are written for them."""
    if origin is dict:
        return all(_isinstance(k, inner[0]) and _isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple and Ellipsis not in inner:
        return len(obj) == len(inner) and all(map(_isinstance, obj, inner))
    return all(_isinstance(each, inner[0]) for each in obj)
