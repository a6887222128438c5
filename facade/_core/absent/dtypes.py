"""PyTorch's dtypes that no tensor of leafax has: programs put them into tables of dtypes."""

from __future__ import annotations

from typing import Any

from ..dtypes import dtype


class AbsentDtype(dtype):
    """A dtype to name and to compare; it raises when a tensor of it is wanted.

    Args:
      name: its name in `torch`.
      itemsize: the bytes of an element.
      why: why there are no such tensors.
    """

    __slots__ = ("_why",)

    def __init__(self, name: str, itemsize: int, why: str) -> None:
        self._name, self.itemsize, self._why = name, itemsize, why
        self.is_floating_point, self.is_complex = name[0] == "f", name[0] == "c"

    @property
    def np(self) -> Any:  # type: ignore[override]  # nobody sets it
        """Raise: NumPy and JAX have no such dtype.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(f"leafax has no tensors of {self}: {self._why}")

    @property
    def is_signed(self) -> bool:
        """Return whether the dtype has negative numbers."""
        return not self._name.startswith(("u", "qu", "bits"))


_QUANTIZED = "there are no quantized tensors"
_NO_SUCH = "JAX has no such dtype"
qint8 = AbsentDtype("qint8", 1, _QUANTIZED)
quint8 = AbsentDtype("quint8", 1, _QUANTIZED)
qint32 = AbsentDtype("qint32", 4, _QUANTIZED)
quint4x2 = AbsentDtype("quint4x2", 1, _QUANTIZED)
quint2x4 = AbsentDtype("quint2x4", 1, _QUANTIZED)
complex32 = chalf = AbsentDtype("complex32", 4, _NO_SUCH)
float4_e2m1fn_x2 = AbsentDtype("float4_e2m1fn_x2", 1, _NO_SUCH)
# Small integers and bare bits, by their names alone.
int1, int2, int3, int4, int5, int6, int7 = [
    AbsentDtype(f"int{bits}", 1, _NO_SUCH) for bits in range(1, 8)
]
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = [
    AbsentDtype(f"uint{bits}", 1, _NO_SUCH) for bits in range(1, 8)
]
bits8, bits1x8, bits2x4, bits4x2 = [
    AbsentDtype(f"bits{bits}", 1, _NO_SUCH) for bits in ("8", "1x8", "2x4", "4x2")
]
bits16 = AbsentDtype("bits16", 2, _NO_SUCH)
