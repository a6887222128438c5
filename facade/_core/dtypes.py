"""`dtype`, `device` and `Size`: what a tensor says of itself, printed as PyTorch prints it."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import ml_dtypes
import numpy

from leafax.functional.program.dtypes import FLOAT8, is_complex, is_floating, scalar_name

from .jax_devices import device as device


class dtype:
    """A tensor's element type; one object a type, as `torch.float32` is.

    Attributes:
      np: the NumPy dtype (`ml_dtypes` for bfloat16).
    """

    __slots__ = ("np", "_name", "is_floating_point", "is_complex", "itemsize")
    np: Any

    def __init__(self, np_dtype: Any, name: str) -> None:
        self.np = numpy.dtype(np_dtype)
        self._name = name
        self.is_floating_point = is_floating(self.np)
        self.is_complex = is_complex(self.np)
        self.itemsize = self.np.itemsize

    @property
    def is_signed(self) -> Any:
        """Return whether the dtype has negative numbers."""
        return self.np.kind not in "bu"

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name

    def to_real(self) -> dtype:
        return _BY_NP[numpy.zeros((), self.np).real.dtype]

    def to_complex(self) -> dtype:
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(self.np)}")
        return complex128 if self._name == "float64" else complex64


float32 = float = dtype("float32", "float32")
float64 = double = dtype("float64", "float64")
float16 = half = dtype("float16", "float16")
bfloat16 = dtype(ml_dtypes.bfloat16, "bfloat16")
complex64 = cfloat = dtype("complex64", "complex64")
complex128 = cdouble = dtype("complex128", "complex128")
uint8 = dtype("uint8", "uint8")
int8 = dtype("int8", "int8")
int16 = short = dtype("int16", "int16")
int32 = int = dtype("int32", "int32")
int64 = long = dtype("int64", "int64")
uint16 = dtype("uint16", "uint16")
uint32 = dtype("uint32", "uint32")
uint64 = dtype("uint64", "uint64")
bool = dtype("bool", "bool")

ALL = (
    float32, float64, float16, bfloat16, complex64, complex128,
    uint8, int8, int16, int32, int64, uint16, uint32, uint64, bool,
)  # fmt: skip
FLOATS_8 = [dtype(kind, kind.name) for kind in FLOAT8]
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = FLOATS_8
_BY_NP = {d.np: d for d in (*ALL, *FLOATS_8)}


def python_number(x: numpy.generic) -> Any:
    """Turn NumPy's number into a Python one; to PyTorch NumPy's bools are floats."""
    return builtins.float(x) if isinstance(x, numpy.bool_) else x.item()


def of(np_dtype: Any) -> dtype:
    """Return the `dtype` object of a NumPy or JAX dtype."""
    return _BY_NP[numpy.dtype(np_dtype)]


_PYTHON = {
    builtins.float: float64, builtins.int: int64, builtins.bool: bool,
    builtins.complex: complex128,
}  # fmt: skip


def as_dtype(function: str, given: Any, name: str = "'dtype'") -> dtype:
    """Read a dtype argument of `function`: one of ours, or a Python type of numbers.

    Args:
      name: what messages call the argument.
    """
    if isinstance(given, dtype):
        return given
    if isinstance(given, type) and given in _PYTHON:
        return _PYTHON[given]
    raise TypeError(
        f"{function}(): argument {name} must be torch.dtype, not {type(given).__name__}"
    )


def type_string(np_dtype: Any) -> str:
    """Return the answer of `tensor.type()`, which messages name: `"torch.FloatTensor"`."""
    return f"torch.{scalar_name(np_dtype)}Tensor"


def tensor_string(np_dtype: Any) -> str:
    """Return the name that errors give a tensor of a dtype: younger dtypes have no class."""
    name = scalar_name(np_dtype)
    young = name.startswith(("Complex", "BFloat16", "Bool", "UInt"))
    return f"CPU{name}Type" if young else f"torch.{name}Tensor"


def _as_int(place: builtins.int, n: Any) -> builtins.int:
    """Read one of the sizes that a `Size` is made of."""
    value = getattr(n, "_v", None)  # of a tensor
    try:
        if value is None or value.dtype.kind in "iu":
            return operator.index(n)
    except (TypeError, RuntimeError):
        pass
    kind = type(n).__name__
    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{kind}')")


class Size(tuple[Any, ...]):
    """A shape: a tuple of ints that prints as PyTorch's."""

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        made = tuple.__new__(cls, sizes)
        for n in made:
            if type(n) is not builtins.int:
                return tuple.__new__(cls, [_as_int(i, k) for i, k in enumerate(made)])
        return made

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> Any:
        n = 1
        for k in self:
            n *= k
        return n

    def __getitem__(self, key: Any) -> Any:
        got = tuple.__getitem__(self, key)
        return Size(got) if isinstance(key, slice) else got

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            reflected = getattr(builtins.type(other), "__radd__", None)
            made = NotImplemented if reflected is None else reflected(other, self)
            if made is not NotImplemented:
                return made
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, n: Any) -> Size:
        if not hasattr(n, "__index__"):
            kind = builtins.type(n).__name__
            raise TypeError(f"can't multiply sequence by non-int of type '{kind}'")
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__
