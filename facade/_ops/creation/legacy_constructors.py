"""`Tensor(...)` and `FloatTensor(...)`: PyTorch's constructors from before `tensor(...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.dtypes import cpp_name, default_float, scalar_name
from leafax.functional.program.op import TABLE
from leafax.functional.program.platform import where_data_are_made

from ..._core import dtypes
from ..._core.handle import Handle
from ..._core.jax_devices import name_of
from ..._core.memory_format import strided
from ..._core.overrides.state import note_class
from ..._core.python_data import is_sequence, name_of_type
from ..._dispatch.record import apply
from ..._tracing import inputs
from .factories import empty, zeros
from .from_data import tensor
from .storage_objects import TypedStorage, UntypedStorage


def legacy_tensor(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a tensor in the default float dtype.

    `Tensor(2, 3)` takes sizes, `Tensor([1, 2])` data.

    A tensor may have any dtype.
    """
    first = args[0] if len(args) == 1 else None
    dtype = first._v.dtype if isinstance(first, Handle) else default_float()
    made = make(args, kwargs, dtypes.of(dtype), kwargs.pop("device", None), "Tensor")
    return made if cls is inputs._tensor_class else of_class(made, cls)


def of_class(made: Any, cls: type) -> Any:
    """Return a tensor that nobody else holds, as one of a class derived from `Tensor`."""
    note_class(cls)
    try:
        made.__class__ = cls
    except TypeError:  # `__slots__` of the class's own lie in memory behind those of `Tensor`
        if made.requires_grad:
            raise
        blank = inputs.from_array(np.zeros(0, made._v.dtype))
        slotted: Any = object.__new__(cls)
        slotted.__dict__.update(blank.__dict__)
        slotted.data = made
        return slotted
    return made


def make(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: Any, device: Any, said: str) -> Any:
    """Make what the old constructors make of their arguments, in one dtype.

    Args:
      said: `"Tensor"` for the constructor of tensors, `"new"` for the method.
    """
    if device is not None and dtypes.device(device).type not in (_here(), "cpu"):
        raise RuntimeError(
            f"legacy constructor expects device type: {_here()} but device type: "
            f"{dtypes.device(device).type} was passed"
        )
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
        return _alias(first, dtype, device, said)
    if len(args) == 1 and isinstance(first, UntypedStorage):
        return _of_storage(first, dtype)
    if len(args) == 1 and isinstance(first, dtypes.Size):
        return empty(tuple(first), dtype=dtype)
    if len(args) == 1 and is_sequence(first) and not isinstance(first, str):
        return tensor(first, dtype=dtype)
    for place, a in enumerate(args):
        if not isinstance(a, (int, np.integer)) or isinstance(a, bool):
            raise _no_size(a, place)
        if a < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {a}: {list(args)}")
    return empty(*args, dtype=dtype)


def _of_storage(store: Any, dtype: Any) -> Any:
    """Return a tensor on the memory of a storage."""
    made = zeros(0, dtype=dtype)
    if isinstance(store, TypedStorage) and store.dtype != made.dtype:
        want, have = (scalar_name(d.np) for d in (made.dtype, store.dtype))
        raise RuntimeError(
            f"Expected a Storage of type {want} or an UntypedStorage, but got type {have} for "
            "argument 1 'storage'"
        )
    return made.set_(store)


def _here() -> str:
    return name_of(where_data_are_made())[0]


def _alias(x: Any, dtype: Any, device: Any, said: str) -> Any:
    if device is not None:
        form = "torch.Tensor(tensor, device=device)"
        remedy = "torch.tensor(...) or torch.as_tensor(...)"
        if said == "new":
            form, remedy = "tensor.new(tensor, device=device)", "torch.as_tensor(...)"
        what = "constructor" if said == "Tensor" else "new"
        raise RuntimeError(
            f"Legacy tensor {what} of the form {form} is not supported.  Use {remedy} instead."
        )
    if x.dtype is not dtype:
        raise TypeError(f"expected {_options(dtype)} (got {_options(x.dtype)})")
    return apply(TABLE["alias"], x)


def _options(dtype: Any) -> str:
    return (
        f"TensorOptions(dtype={cpp_name(dtype.np)}, device=cpu, layout=Strided, "
        "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _no_size(x: Any, place: int) -> TypeError:
    kind = name_of_type(x)
    if place:
        return TypeError(
            f"new(): argument 'size' failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    if isinstance(x, str):
        return TypeError(f"new(): invalid data type '{kind}'")
    return TypeError(f"new(): data must be a sequence (got {kind})")


class TensorType(type):
    """The metaclass of `FloatTensor` and its kin: types that tensors of one dtype belong to."""

    dtype: Any
    layout = strided
    is_cuda = is_sparse = False

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Handle) and x._v.dtype == cls.dtype.np

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return make(args, kwargs, cls.dtype, kwargs.pop("device", None), "Tensor")

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


_ABOUT = "Tensors of {}."
#: The types of both kinds, by their names.
DTYPES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
    "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8,
    "BoolTensor": dtypes.bool,
}  # fmt: skip


def make_type(metaclass: Any, name: str, about: str) -> Any:
    """Return a type of tensors of one dtype.

    Args:
      about: its docstring, in which `{}` stands for the dtype.
    """
    made = metaclass(name, (), {"dtype": DTYPES[name]})
    made.__doc__ = about.format(DTYPES[name])
    return made


FloatTensor = make_type(TensorType, "FloatTensor", _ABOUT)
DoubleTensor = make_type(TensorType, "DoubleTensor", _ABOUT)
HalfTensor = make_type(TensorType, "HalfTensor", _ABOUT)
BFloat16Tensor = make_type(TensorType, "BFloat16Tensor", _ABOUT)
LongTensor = make_type(TensorType, "LongTensor", _ABOUT)
IntTensor = make_type(TensorType, "IntTensor", _ABOUT)
ShortTensor = make_type(TensorType, "ShortTensor", _ABOUT)
CharTensor = make_type(TensorType, "CharTensor", _ABOUT)
ByteTensor = make_type(TensorType, "ByteTensor", _ABOUT)
BoolTensor = make_type(TensorType, "BoolTensor", _ABOUT)
