"""PyTorch's `torch.cuda.FloatTensor` and its kin: types that tensors on a GPU belong to."""

from __future__ import annotations

from typing import Any

from .._core.handle import Handle
from .._core.memory_format import strided
from .._ops.creation.legacy_constructors import make_type


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


_ABOUT = "Tensors of {} on a GPU; `leafax.tensor(..., device='cuda')` makes them."

FloatTensor = make_type(_CudaTensorType, "FloatTensor", _ABOUT)
DoubleTensor = make_type(_CudaTensorType, "DoubleTensor", _ABOUT)
HalfTensor = make_type(_CudaTensorType, "HalfTensor", _ABOUT)
BFloat16Tensor = make_type(_CudaTensorType, "BFloat16Tensor", _ABOUT)
LongTensor = make_type(_CudaTensorType, "LongTensor", _ABOUT)
IntTensor = make_type(_CudaTensorType, "IntTensor", _ABOUT)
ShortTensor = make_type(_CudaTensorType, "ShortTensor", _ABOUT)
CharTensor = make_type(_CudaTensorType, "CharTensor", _ABOUT)
ByteTensor = make_type(_CudaTensorType, "ByteTensor", _ABOUT)
BoolTensor = make_type(_CudaTensorType, "BoolTensor", _ABOUT)
