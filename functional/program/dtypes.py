"""PyTorch's type promotion over JAX dtypes.

PyTorch sorts the operands of an op into three classes: tensors with dimensions, 0-dim tensors, and
Python numbers. A later class changes the result only when its *category* (bool < int < float <
complex) is higher. The rule and the table are those of `torch.result_type`.

A Python number that became a runtime input of a program is a weakly typed JAX scalar, so that
class is still visible while the program is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from .float8 import FLOAT8 as FLOAT8
from .float8 import within_range
from .numerics import default_float as default_float
from .numerics import set_default_float as set_default_float

bfloat16 = np.dtype(ml_dtypes.bfloat16)
_FLOAT32 = np.dtype("float32")
# JAX's own are without types.
finfo: Callable[[Any], Any] = jnp.finfo
iinfo: Callable[[Any], Any] = jnp.iinfo
# PyTorch's order: within a category a later dtype wins over an earlier one.
_ORDER = (
    [np.dtype(name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16")]
    + [bfloat16]
    + [np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")]
)
# What PyTorch calls a dtype in messages (`c10::toString`) and in Python.
SCALAR_NAMES = {
    np.dtype("bool"): "Bool", np.dtype("uint8"): "Byte", np.dtype("int8"): "Char",
    np.dtype("int16"): "Short", np.dtype("int32"): "Int", np.dtype("int64"): "Long",
    np.dtype("uint16"): "UInt16", np.dtype("uint32"): "UInt32", np.dtype("uint64"): "UInt64",
    np.dtype("float16"): "Half", bfloat16: "BFloat16", np.dtype("float32"): "Float",
    np.dtype("float64"): "Double", np.dtype("complex64"): "ComplexFloat",
    np.dtype("complex128"): "ComplexDouble",
    **{dtype: dtype.name.capitalize() for dtype in FLOAT8},
}  # fmt: skip
_BOOL, _INT, _FLOAT, _COMPLEX = range(4)
_CATEGORIES = {"b": _BOOL, "u": _INT, "i": _INT, "f": _FLOAT, "V": _FLOAT, "c": _COMPLEX}


def scalar_name(dtype: Any) -> str:
    """Return PyTorch's name of a dtype in messages: `"Float"` for float32, `"Long"` for int64."""
    return SCALAR_NAMES[np.dtype(dtype)]


# C++ spellings, for the messages that print `c10::ScalarType` through type names.
_CPP_NAMES = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16",
    "Long": "long int", "Int": "int", "Short": "short int", "Char": "signed char",
    "Byte": "unsigned char", "Bool": "bool", "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


def cpp_name(dtype: Any) -> str:
    """Return C++'s name of a dtype in messages: `"float"` for float32, `"long int"` for int64."""
    return _CPP_NAMES.get(scalar_name(dtype), scalar_name(dtype))


def category(dtype: Any) -> int:
    """Return 0 for bool, 1 for integers, 2 for floating point, 3 for complex."""
    dtype = np.dtype(dtype)
    return _FLOAT if dtype == bfloat16 else _CATEGORIES[dtype.kind]


def is_floating(dtype: Any) -> bool:
    return category(dtype) == _FLOAT


def is_complex(dtype: Any) -> bool:
    return category(dtype) == _COMPLEX


def is_differentiable(dtype: Any) -> bool:
    """Return True for dtypes whose tensors may require gradients: floating point and complex."""
    return category(dtype) >= _FLOAT


def is_integral(dtype: Any) -> bool:
    """Return True for integers and bool."""
    return category(dtype) <= _INT


_REAL_OF: dict[np.dtype, np.dtype] = {
    np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64"),
}  # fmt: skip
_COMPLEX_OF: dict[np.dtype, np.dtype] = {
    np.dtype("float64"): np.dtype("complex128"), np.dtype("float32"): np.dtype("complex64"),
    np.dtype("float16"): np.dtype("complex64"), bfloat16: np.dtype("complex64"),
}  # fmt: skip


def real_of(dtype: Any) -> np.dtype:
    """Return the dtype of the real part: float32 for complex64, itself for real dtypes."""
    dtype = np.dtype(dtype)
    return _REAL_OF.get(dtype, dtype)


def complex_of(dtype: Any) -> np.dtype:
    """Return the complex dtype of the same precision, itself for complex dtypes."""
    dtype = np.dtype(dtype)
    return _COMPLEX_OF.get(dtype, dtype)


_BAREBONES = {"uint16", "uint32", "uint64"}  # they promote to floats, and to nothing else


def promote_types(a: Any, b: Any) -> np.dtype:
    """Return PyTorch's `torch.promote_types` of two dtypes.

    Args:
      a, b: NumPy's dtypes, or what `numpy.dtype` takes.

    Returns:
      The smallest dtype that both convert to.

    >>> promote_types("int64", "float16")
    dtype('float16')
    """
    a, b = np.dtype(a), np.dtype(b)
    if a == b:
        return a
    ca, cb = category(a), category(b)
    if not _BAREBONES.isdisjoint((a.name, b.name)) and _FLOAT not in (ca, cb):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to "
            f"promote {scalar_name(a)} and {scalar_name(b)}"
        )
    if ca != cb:
        high, low = (a, b) if ca > cb else (b, a)
        # A complex dtype must be as precise as the float that it meets.
        if category(high) == _COMPLEX and category(low) == _FLOAT:
            return promote_types(high, complex_of(low))
        return high
    if {a, b} == {np.dtype("float16"), bfloat16}:
        return np.dtype("float32")
    if ca == _INT:
        if np.dtype("uint8") in (a, b):
            # uint8 with int8 needs int16; with wider signed integers those already hold it.
            other = b if a == np.dtype("uint8") else a
            return np.dtype("int16") if other == np.dtype("int8") else other
    return max(a, b, key=_ORDER.index)


_DEFAULTS = {
    bool: np.dtype("bool"), int: np.dtype("int64"),
    float: np.dtype("float32"), complex: np.dtype("complex64"),
}  # fmt: skip


def is_number(x: Any) -> bool:
    """Return True for a Python number and for its runtime form, a weakly typed scalar."""
    return isinstance(x, (bool, int, float, complex)) or getattr(x, "weak_type", False)


def _number_dtype(x: Any, default_float: np.dtype) -> np.dtype:
    # NumPy's float64 is a float of Python as well.
    kind = next((k for k in (bool, int, float, complex) if isinstance(x, k)), None)
    if kind is None:
        cat = category(x.dtype)
        kind = (bool, int, float, complex)[cat]
    if kind is float:
        return default_float
    if kind is complex:
        return complex_of(default_float)
    if kind is int and isinstance(x, int) and x >= 1 << 63:
        return np.dtype("uint64")
    return _DEFAULTS[kind]


def result_type(*operands: Any, default_float: Any = _FLOAT32) -> np.dtype:
    """Return PyTorch's `torch.result_type` of arrays and Python numbers.

    Args:
      operands: JAX arrays (or anything with `dtype` and `ndim`) and Python numbers.
      default_float: the dtype of Python floats that meet no floating point tensor.

    Returns:
      The dtype that arithmetic on these operands has.

    >>> result_type(np.ones(2, np.int32), 0.5)
    dtype('float32')
    """
    classes: list[np.dtype | None] = [None, None, None]
    for x in operands:
        if x is None:
            continue
        if is_number(x):
            rank, dtype = 2, _number_dtype(x, np.dtype(default_float))
        else:
            rank, dtype = (0 if x.ndim else 1), np.dtype(x.dtype)
        held = classes[rank]
        classes[rank] = dtype if held is None else promote_types(held, dtype)
    result: np.dtype | None = None
    for held in classes:
        if held is None:
            continue
        if result is None:
            result = held
        elif category(held) > category(result):
            # A Python complex takes the precision of the float tensor that it meets.
            if category(held) == _COMPLEX and category(result) == _FLOAT:
                held = complex_of(result)
            result = held if category(result) == _INT else promote_types(result, held)
    assert result is not None
    return result


# The integer that processors make of a float on its way to one of these dtypes.
_THROUGH: dict[str, Any] = {
    "uint8": np.int64, "int8": np.int32, "int16": np.int32, "int32": np.int32, "int64": np.int64,
    "uint16": np.int32, "uint32": np.int64, "uint64": np.int64,
}  # fmt: skip
_BY_HALVES: dict[str, Any] = {"uint32": np.int32, "uint64": np.int64}


def _as_integer(x: Any, dtype: np.dtype) -> Any:
    """Cast a float array to integers, what does not fit as PyTorch's processors do.

    XLA saturates. There the lowest bits of a wider integer are taken, and what that cannot hold
    (NaN, too) is its smallest number.
    """
    if dtype.name in _BY_HALVES and not (dtype == np.uint32 and x.dtype == np.float16):
        # The upper half is moved down, and the highest bit put back.
        signed: Any = np.dtype(_BY_HALVES[dtype.name])
        with np.errstate(over="ignore"):
            half = jnp.asarray(-float(np.iinfo(signed).min), x.dtype)
        high = x >= half
        low = _as_integer(jnp.where(high, x - half, x), signed)
        return jnp.where(high, low ^ np.iinfo(signed).min, low).astype(dtype)
    wide = _THROUGH[dtype.name]
    least, end = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    with np.errstate(over="ignore"):  # in halves they are infinite, which is as good
        fits = (x >= least) & (x < end)
        return jnp.where(fits, x, jnp.asarray(least, x.dtype)).astype(wide).astype(dtype)


def cast(x: Any, dtype: Any) -> Any:
    """Cast `x` (array or number) to a strongly typed JAX array of `dtype`.

    Complex to real drops the imaginary part, as PyTorch does.
    """
    dtype = np.dtype(dtype)
    if not isinstance(x, (bool, int, float, complex)):
        if x.dtype == dtype and not getattr(x, "weak_type", False):
            return x
        if category(x.dtype) == _COMPLEX and category(dtype) not in (_COMPLEX, _BOOL):
            x = jnp.real(x)
        if x.dtype == bool and category(dtype) >= _FLOAT:
            # Of `y * x.astype(dtype)` XLA makes a choice between y and 0, which loses NaN and -0.
            return jnp.where(x, jnp.ones((), dtype), jnp.zeros((), dtype))
        if category(x.dtype) == _FLOAT and dtype.name in _THROUGH:
            return _as_integer(x, dtype)
        if dtype in FLOAT8:
            x = within_range(x, dtype)
        return jnp.asarray(x).astype(dtype)
    whole = category(dtype) in (_COMPLEX, _BOOL) or not isinstance(x, complex)
    with np.errstate(over="ignore", invalid="ignore"):  # NumPy would warn where PyTorch does not
        held = np.asarray(x if whole else x.real)  # an int beyond int64 is a uint64, and wraps
        return jnp.asarray(held.astype(dtype))


def promote(*operands: Any, to_float: bool = False) -> list[Any]:
    """Cast arrays and numbers to their common PyTorch dtype.

    Args:
      operands: arrays and Python numbers.
      to_float: integers become the default float (`sin`, true division and their like).
    """
    dtype = result_type(*operands, default_float=default_float())
    if to_float and is_integral(dtype):
        dtype = default_float()
    return [cast(x, dtype) for x in operands]
