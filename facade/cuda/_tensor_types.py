"""PyTorch's `torch.cuda.FloatTensor` and its kin: types that tensors on a GPU belong to."""

from __future__ import annotations

from typing import Any

from .._core import dtypes
from .._core.handle import Handle
from .._core.memory_format import strided


class _CudaTensorType(type):
    """The metaclass of the types."""

    dtype: Any
    layout = strided
    is_cuda, is_sparse = True, False

    def __instancecheck__(cls, x: Any) -> bool:
        found: Any = x
        return isinstance(x, Handle) and found.is_cuda and found.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
        )

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


def _type(name: str, dtype: Any) -> Any:
    made = _CudaTensorType(name, (), {"dtype": dtype})
    made.__doc__ = f"Tensors of {dtype} on a GPU; `leafax.tensor(..., device='cuda')` makes them."
    return made


FloatTensor = _type("FloatTensor", dtypes.float32)
DoubleTensor = _type("DoubleTensor", dtypes.float64)
HalfTensor = _type("HalfTensor", dtypes.float16)
BFloat16Tensor = _type("BFloat16Tensor", dtypes.bfloat16)
LongTensor = _type("LongTensor", dtypes.int64)
IntTensor = _type("IntTensor", dtypes.int32)
ShortTensor = _type("ShortTensor", dtypes.int16)
CharTensor = _type("CharTensor", dtypes.int8)
ByteTensor = _type("ByteTensor", dtypes.uint8)
BoolTensor = _type("BoolTensor", dtypes.bool)
