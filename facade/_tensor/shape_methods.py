"""Facts of a tensor that need no values: shape, dtype and strides."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.op import TABLE

from .._core.dtypes import ALL, Size, of, type_string
from .._core.dtypes import dtype as dtype_class
from .._core.handle import Handle
from .._core.memory_format import RANKS, is_laid_out, preserve_format
from .._core.python_data import name_of_class
from .._core.vmap_checks import refuse_in_vmap
from .._dispatch.record import apply
from .._rules import kernel_strides as kernel_strides  # adds its rules to those of `stride()`
from .._rules.strides.channels_last import strides_in
from .._storage.addresses import pointer
from .._storage.strides import is_contiguous, offset, stride


class FactsMixin(Handle):
    """The part of `Tensor` that needs no program to run."""

    @property
    def shape(self) -> Size:
        """Return the sizes of the dimensions."""
        return self._v.shape  # type: ignore[no-any-return]

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self._v.shape if dim is None else self._v.shape[_dim(dim, self.dim())]

    @property
    def dtype(self) -> dtype_class:
        """Return the element type."""
        return of(self._v.dtype)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self._v.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._v.shape)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._v.numel  # type: ignore[no-any-return]

    nelement = numel

    @property
    def itemsize(self) -> int:
        """Return the bytes an element takes."""
        return int(self._v.dtype.itemsize)

    element_size = lambda self: self.itemsize  # noqa: E731

    @property
    def nbytes(self) -> int:
        """Return the bytes all elements take."""
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is floating point."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Tell whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether the strides are those of a row-major array."""
        if memory_format in RANKS:
            refuse_in_vmap("is_contiguous", self)
            return is_laid_out(self.shape, self.stride(), memory_format)
        return self.numel() == 0 or is_contiguous(self)

    def is_set_to(self, tensor: Any) -> bool:
        """Tell whether both are the same part of the same storage, with the same strides."""
        if self is tensor:
            return True
        of_one = self._store is not None and self._store is tensor._store
        if not of_one or self.shape != tensor.shape or self.stride() != tensor.stride():
            return False
        return bool(self.storage_offset() == tensor.storage_offset())

    def contiguous(self, memory_format: Any = None) -> Any:
        """Return this tensor, or a copy in the memory format, row by row by default.

        Raises:
          RuntimeError: for `channels_last`, which takes tensors of 4 dims.
        """
        if memory_format in RANKS:
            if self.is_contiguous(memory_format=memory_format):
                return self
            strides_in(self.shape, memory_format)
            return apply(TABLE["contiguous"], self, memory_format)
        if self.is_contiguous():
            return self
        if memory_format is preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return apply(TABLE["contiguous"], self)

    def stride(self, dim: int | None = None) -> Any:
        """Return the number of elements between neighbours, for each dimension or one."""
        strides = stride(self)
        return strides if dim is None else strides[_dim(dim, self.dim(), "stride")]

    def storage_offset(self) -> int:
        """Count the elements of the storage before this tensor's first."""
        return offset(self)

    def data_ptr(self) -> int:
        """Return a number that stands for where the tensor's first element is; no address."""
        refuse_in_vmap("data_ptr", self)
        return pointer(self)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the type's name, or this tensor cast to a dtype."""
        if dtype is None:
            return type_string(self._v.dtype)
        if isinstance(dtype, str):
            found = next((d for d in ALL if type_string(d.np) == dtype), None)
            if found is None:
                raise ValueError(f"invalid type: '{dtype}'")
            return self.to(found)
        if isinstance(dtype, type):
            if issubclass(dtype, Handle):
                return self.to(of(default_float()))
            if not isinstance(getattr(dtype, "dtype", None), dtype_class):
                raise ValueError(f"invalid type: '{name_of_class(dtype)}'")
        elif not isinstance(dtype, dtype_class):
            raise TypeError("dtype must be a type, str, or dtype object")
        return self.to(getattr(dtype, "dtype", dtype))


def _dim(dim: int, ndim: int, said: str = "size") -> int:
    if isinstance(dim, (str, float)):
        name = type(dim).__name__
        raise TypeError(f"{said}(): argument 'dim' (position 1) must be int, not {name}")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim
