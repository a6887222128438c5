"""`Tensor(...)` and `FloatTensor(...)`: PyTorch's constructors from before `tensor(...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional import default_float

from . import _dtype
from ._handle import Handle
from ._python_data import is_sequence


def legacy_tensor(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor(2, 3)`: sizes; `Tensor([1, 2])`: data; both in the default float dtype."""
    return _make(args, kwargs, _dtype.of(default_float()), "torch.Tensor")


def _make(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: Any, name: str) -> Any:
    from ._creation import tensor, zeros

    kwargs.pop("device", None)
    if "data" in kwargs:
        args = (kwargs.pop("data"),)
    if "size" in kwargs:
        args = tuple(kwargs.pop("size"))
    if kwargs:
        raise TypeError(f"new() received an invalid combination of arguments: {sorted(kwargs)}")
    if not args:
        return zeros(0, dtype=dtype)
    first = args[0]
    if len(args) == 1 and isinstance(first, Handle):
        if first.dtype is not dtype:  # type: ignore[attr-defined]
            raise TypeError(
                f"expected {name if name != 'torch.Tensor' else 'Float'} (got "
                f"{_dtype.type_string(first._v.dtype)})"
            )
        return first.detach()  # type: ignore[attr-defined]
    if len(args) == 1 and isinstance(first, _dtype.Size):
        return zeros(tuple(first), dtype=dtype)
    if len(args) == 1 and is_sequence(first):
        return tensor(first, dtype=dtype)
    if all(isinstance(a, (int, np.integer)) and not isinstance(a, bool) for a in args):
        return zeros(*args, dtype=dtype)
    kinds = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new(): data must be a sequence (got {kinds})"
        if len(args) == 1
        else f"new() received an invalid combination of arguments - got ({kinds})"
    )


class TensorType(type):
    """The metaclass of `FloatTensor` and its kin: types that tensors of one dtype belong to."""

    dtype: Any

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Handle) and x._v.dtype == cls.dtype.np

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _make(args, kwargs, cls.dtype, f"torch.{cls.__name__}")

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _type(name: str, dtype: Any) -> Any:
    made = TensorType(name, (), {"dtype": dtype})
    made.__doc__ = f"Tensors of {dtype}."
    return made


FloatTensor = _type("FloatTensor", _dtype.float32)
DoubleTensor = _type("DoubleTensor", _dtype.float64)
HalfTensor = _type("HalfTensor", _dtype.float16)
BFloat16Tensor = _type("BFloat16Tensor", _dtype.bfloat16)
LongTensor = _type("LongTensor", _dtype.int64)
IntTensor = _type("IntTensor", _dtype.int32)
ShortTensor = _type("ShortTensor", _dtype.int16)
CharTensor = _type("CharTensor", _dtype.int8)
ByteTensor = _type("ByteTensor", _dtype.uint8)
BoolTensor = _type("BoolTensor", _dtype.bool)
