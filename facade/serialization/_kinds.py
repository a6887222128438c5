"""PyTorch's classes of storages, which say of which dtype a file's memory is."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

_STORAGES = {
    "BFloat16Storage": ml_dtypes.bfloat16, "BoolStorage": "bool", "ByteStorage": "uint8",
    "CharStorage": "int8", "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64", "DoubleStorage": "float64", "FloatStorage": "float32",
    "HalfStorage": "float16", "IntStorage": "int32", "LongStorage": "int64",
    "ShortStorage": "int16", "UntypedStorage": "uint8",
}  # fmt: skip
#: Of tensors that are refused once the file says which they are.
_QUANTIZED = {
    "QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32",
    "QUInt4x2Storage": "uint8", "QUInt2x4Storage": "uint8",
}  # fmt: skip
QUANTIZATIONS = (
    "per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)  # fmt: skip


class StorageType(NamedTuple):
    """Stands for a class such as `torch.FloatStorage`."""

    name: str
    np: np.dtype[Any]


TYPES = {
    name: StorageType(name, np.dtype(kind)) for name, kind in {**_STORAGES, **_QUANTIZED}.items()
}
_BY_DTYPE = {TYPES[name].np: TYPES[name] for name in _STORAGES if name != "UntypedStorage"}


def type_of(kind: np.dtype[Any]) -> StorageType:
    """Return the class of storages of a dtype; the untyped one for dtypes that have none."""
    return _BY_DTYPE.get(kind, TYPES["UntypedStorage"])
