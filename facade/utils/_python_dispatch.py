"""PyTorch's `torch.utils._python_dispatch`, as far as code asks whether any of it is in use.

There is no dispatch below `__torch_function__` here: ops are recorded, not sent to kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class TorchDispatchMode:
    """A class to derive from; its `with` block refuses, since no op reaches a dispatcher."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: leafax has no __torch_dispatch__, since ops are recorded and "
            "compiled together; torch.overrides.TorchFunctionMode sees the calls of functions"
        )

    def __exit__(self, *exc: object) -> None:
        pass

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return False: it is no mode of PyTorch's own."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that would change nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> None:
    """Return None: no mode is ever in force."""


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []


def _len_torch_dispatch_stack() -> int:
    return 0


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return False: no mode is ever in force."""
    return False


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Return False: no mode is ever in force."""
    return False


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    yield []


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Tell whether a tensor is made of others, `__tensor_flatten__` giving them."""
    kind = t if isinstance(t, type) else type(t)
    return hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Tell whether tensors of a class are made of others."""
    return is_traceable_wrapper_subclass(t)


def transform_subclass(
    t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Make a tensor that is made of others anew, of what `callback(name, tensor)` makes of them."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    made = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(made, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return a function's result: who shares memory with whom is known from how it was made."""
    return out
