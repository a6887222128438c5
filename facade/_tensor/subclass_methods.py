"""Methods for classes derived from `Tensor`: results of their class, and ways to make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.overrides.state import DisableTorchFunctionSubclass, convert
from .._ops.creation.legacy_constructors import of_class
from .tensor import Tensor


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return what reads a tensor's fields, whose results stay what they are."""
    t: Any = Tensor
    return {t._base.__get__, t.grad.__get__}


def __torch_function__(  # noqa: N807
    cls: Any, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Call a function for arguments of a class derived from `Tensor`; its results are of it, too.

    Derived classes override this to see all calls with a tensor of theirs.
    """
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        made = func(*args, **(kwargs or {}))
        return made if cls is Tensor or func in _NOWRAP else convert(made, cls)


def _make_subclass(cls: Any, data: Any, require_grad: bool = False, **options: Any) -> Any:
    """Make a tensor of a derived class on the memory of another, without its history."""
    made = of_class(data.detach(), cls)
    return made.requires_grad_() if require_grad else made


def _make_wrapper_subclass(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse to make a tensor without data: there is no dispatch below `__torch_function__`."""
    raise NotImplementedError(
        f"{cls.__name__}: tensors without data of their own (_make_wrapper_subclass) need "
        "__torch_dispatch__, which leafax does not have; derive from Tensor, keep the data in it "
        "and override __torch_function__"
    )


Tensor.__torch_function__ = classmethod(__torch_function__)  # type: ignore[attr-defined]
Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)  # type: ignore[attr-defined]
_NOWRAP = get_default_nowrap_functions()
