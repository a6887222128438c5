"""Python data read as PyTorch's `tensor` reads it: its sizes, then its dtype, then its numbers.

The sizes are those of the first item of each sequence, the dtype is what all items promote to,
and each item must then be a number of that kind. Tensors in lists are numbers, whatever their
number of dimensions.
"""

from __future__ import annotations

import operator
from array import array
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float, promote_types

from .dtypes import Size, device
from .dtypes import dtype as dtype_class
from .handle import Handle
from .memory_format import memory_format
from .trie import Value
from .warn_once import warn_once

_MOST_DIMS = 128
_INT, _BOOL = np.dtype("int64"), np.dtype("bool")
_PLAIN = {bool, int, float, complex}
_OF_TORCH = frozenset({dtype_class, device, Size, memory_format})
_HEAP_TYPE = 1 << 9  # CPython names other types with their module


def is_sequence(x: Any) -> bool:
    """Return whether PyTorch takes `x` for a dimension: a sequence, neither dict nor tensor."""
    if isinstance(x, (list, tuple)):
        return True
    if isinstance(x, (Handle, dict, np.generic, type)):
        return False
    return hasattr(type(x), "__getitem__") and hasattr(type(x), "__len__")


def read(data: Any, dtype: np.dtype | None) -> np.ndarray:
    """Read numbers in nested sequences as an array.

    Args:
      dtype: None for what the items promote to.

    Raises:
      TypeError, ValueError, RuntimeError: PyTorch's, for what is no number of that dtype and for
        sequences of different lengths.
    """
    kind = type(data)
    if dtype is None and (kind is int or (kind is float and -1e38 < data < 1e38)):
        return _number(data, kind)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    sizes = _sizes(data)
    if dtype is None:
        dtype = _promoted(data, None)
        assert dtype is not None
    flat: list[Any] = []
    if 0 not in sizes:
        _store(data, sizes, 0, flat)
    return _converted(flat, dtype).reshape(sizes)


def _number(x: Any, kind: type) -> np.ndarray:
    try:
        return np.array(x, _dtype_of(kind))
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


def _sizes(data: Any) -> tuple[int, ...]:
    sizes: list[int] = []
    while is_sequence(data):
        sizes.append(len(data))
        if len(sizes) > _MOST_DIMS:
            raise ValueError(f"too many dimensions '{name_of_type(data)}'")
        if not sizes[-1]:
            break
        data = data[0]
    return tuple(sizes)


def name_of_type(x: Any) -> str:
    """Return what PyTorch's messages call the type of `x`."""
    return "Tensor" if isinstance(x, Value) else name_of_class(type(x))


def name_of_class(cls: type) -> str:
    """Return a class's name in PyTorch's messages; classes of C have their module's name, too."""
    if cls in _OF_TORCH:
        return f"torch.{cls.__name__}"
    if cls.__flags__ & _HEAP_TYPE or cls.__module__ == "builtins":
        return cls.__name__
    return f"{cls.__module__}.{cls.__name__}"


def _promoted(x: Any, so_far: np.dtype | None) -> np.dtype:
    """Return the dtype that `so_far` and all numbers in `x` promote to."""
    if isinstance(x, (list, tuple)):
        kinds = set(map(type, x))
        if kinds <= _PLAIN:
            for kind in kinds or (float,):
                so_far = _joined(so_far, _dtype_of(kind))
            return so_far  # type: ignore[return-value]
    if isinstance(x, Handle):
        return _joined(so_far, x._v.dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        return _joined(so_far, x.dtype)
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return _joined(so_far, _dtype_of(kind))
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if not is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {name_of_type(x)}")
    for k in range(len(x)):
        if x[k] is x:
            raise TypeError("new(): self-referential lists are incompatible")
        so_far = _promoted(x[k], so_far)
    return _joined(so_far, _dtype_of(float)) if not len(x) else so_far  # type: ignore[return-value]


def _joined(a: np.dtype | None, b: np.dtype) -> np.dtype:
    return b if a is None or a == b else promote_types(a, b)


def _dtype_of(kind: type) -> np.dtype:
    if kind is float:
        return default_float()
    if kind is complex:
        return np.dtype("complex128" if default_float() == np.float64 else "complex64")
    return _INT if kind is int else _BOOL


def _store(x: Any, sizes: tuple[int, ...], dim: int, flat: list[Any]) -> None:
    """Put the items of `x` into `flat`; raise where a length differs from `sizes`."""
    if dim == len(sizes):
        flat.append(x)
        return
    if isinstance(x, np.ndarray):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider "
            "converting the list to a single numpy.ndarray with numpy.array() before converting "
            "to a tensor."
        )
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        try:
            x = list(x)
        except TypeError:
            raise TypeError("not a sequence") from None
    if len(x) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(x)})")
    if dim + 1 == len(sizes):
        flat += x
        return
    for item in x:
        _store(item, sizes, dim + 1, flat)


def _converted(flat: list[Any], dtype: np.dtype) -> np.ndarray:
    kinds = set(map(type, flat))
    if dtype.kind == "b":
        return np.array([_truth(x) for x in flat], dtype)
    if dtype.kind in "iu":
        plain = kinds <= {bool, int}
        return _integers(flat if plain else [_integer(x, dtype) for x in flat], dtype)
    if dtype.kind == "c":
        numbers = flat if kinds <= _PLAIN else [_complex(x) for x in flat]
        wide: Any = np.complex128
    else:
        numbers = flat if kinds <= {bool, int, float} else [_float(x) for x in flat]
        wide = np.float64
    found = np.array(numbers, wide)
    if dtype == found.dtype:
        return found
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def _float(x: Any) -> float:
    if isinstance(x, (float, Handle)):
        return float(x)  # type: ignore[arg-type]
    return array("d", [x])[0]  # whose error is PyTorch's: "must be real number, not str"


def _complex(x: Any) -> complex:
    return complex(x) if isinstance(x, (complex, Handle, np.complexfloating)) else _float(x)  # type: ignore[arg-type]


def _truth(x: Any) -> bool:
    return bool(x) if isinstance(x, (float, complex, np.bool_)) else bool(operator.index(x))


def _integer(x: Any, dtype: np.dtype) -> int:
    if not isinstance(x, float):
        return operator.index(x)
    limits = np.iinfo(dtype)
    if not limits.min <= x <= limits.max:  # NaN as well
        raise _overflow(dtype)
    return int(x)


def _integers(flat: list[int], dtype: np.dtype) -> np.ndarray:
    unsigned = dtype == np.uint64
    if unsigned and min(flat, default=0) < 0:
        raise OverflowError("can't convert negative int to unsigned")
    try:
        found = np.array(flat, np.uint64 if unsigned else np.int64)
    except OverflowError:
        if unsigned:
            raise OverflowError("int too big to convert") from None
        raise ValueError("Overflow when unpacking long long") from None
    if found.size and dtype.itemsize < 8:
        limits = np.iinfo(dtype)
        lowest = limits.min or -limits.max  # negative numbers become unsigned ones
        if found.min() < lowest or found.max() > limits.max:
            raise _overflow(dtype)
    return found.astype(dtype)


def _overflow(dtype: np.dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
