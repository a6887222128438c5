"""Classes of sparse tensors: what they are made of, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._core.dtypes import Size
from .._core.memory_format import sparse_coo, sparse_csc, sparse_csr
from .._core.overrides.state import DisableTorchFunctionSubclass, note_class
from .._tensor.tensor import Tensor

#: What functions and methods do with sparse arguments, by name; the files of ops fill it.
OPS: dict[str, Callable[..., Any]] = {}


def refuse(name: str, kind: str = "Sparse") -> NoReturn:
    """Raise what PyTorch says of a function that sparse tensors do not have."""
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{kind}CPU' backend. leafax has it "
        "for dense tensors: call to_dense() first"
    )


class SparseTensor(Tensor):
    """A tensor of which only some elements are held; all others are zero.

    It has no array of its own, so that functions that know nothing of it refuse it.
    """

    __module__ = "leafax.sparse"
    __slots__ = ()
    is_sparse = True
    layout = sparse_coo
    _kind = "Sparse"
    _shape: Size
    _held: Any  # the values
    _grad_of: Any = None

    @classmethod
    def _blank(cls, shape: Any, values: Any) -> Any:
        made = object.__new__(cls)
        made.__dict__["_shape"], made.__dict__["_held"] = Size(tuple(shape)), values
        note_class(cls)
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return getattr(args[0]._held, func.__self__.fget.__name__)
        if name in OPS:
            return OPS[name](*args, **(kwargs or {}))
        if (
            name.startswith("__")
            or func is getattr(Tensor, name, None)
            or hasattr(func, "__wrapped__")
        ):
            refuse(name, cls._kind)
        with DisableTorchFunctionSubclass():  # a program's own, which asks for overrides
            return func(*args, **(kwargs or {}))

    @property
    def _v(self) -> Any:  # type: ignore[override]
        raise NotImplementedError(
            "a sparse tensor was given to a function that takes dense ones here: call to_dense()"
        )

    # ------------------------------------------------------------ facts

    @property
    def shape(self) -> Size:
        return self._shape

    def size(self, dim: int | None = None) -> Any:
        return self._shape if dim is None else self._shape[dim]

    @property
    def dtype(self) -> Any:
        return self._held.dtype

    @property
    def device(self) -> Any:
        return self._held.device

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def dim(self) -> int:
        return len(self._shape)

    ndimension = dim

    def numel(self) -> int:
        return int(self._shape.numel())

    nelement = numel

    def __len__(self) -> int:
        return int(self._shape[0])

    def is_floating_point(self) -> bool:
        return bool(self._held.is_floating_point())

    def is_complex(self) -> bool:
        return bool(self._held.is_complex())

    def element_size(self) -> int:
        return int(self._held.element_size())

    def get_device(self) -> int:
        return int(self._held.get_device())

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def _nnz(self) -> int:
        return int(self._held.shape[0])

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    __array__: Any = numpy

    def tolist(self) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    # ------------------------------------------------------------ autograd

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        return bool(self._held.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._held.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self._held.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self) -> Any:
        return self._held.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._held.is_leaf)

    @property
    def grad(self) -> Any:  # type: ignore[override]
        found = self._held.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._held.grad = None if value is None else value._held

    def _with(self, values: Any) -> Any:
        """Return a tensor of the same places with other values."""
        raise NotImplementedError

    def _coo(self) -> CooTensor:
        """Return it with coordinates for its places."""
        raise NotImplementedError


class CooTensor(SparseTensor):
    """A sparse tensor by the coordinates of its elements, some of which may stand several times."""

    __slots__ = ()
    _places: Any
    _coalesced: bool

    @classmethod
    def make(cls, indices: Any, values: Any, shape: Any, coalesced: bool = False) -> CooTensor:
        """Make a tensor.

        Args:
          indices: `(sparse dims, elements)`, int64.
          values: `(elements, *dense dims)`.
          coalesced: the indices are sorted and differ.
        """
        made: CooTensor = cls._blank(shape, values)
        made.__dict__["_places"], made.__dict__["_coalesced"] = indices, coalesced
        return made

    def _with(self, values: Any) -> CooTensor:
        return CooTensor.make(self._places, values, self._shape, self._coalesced)

    def _coo(self) -> CooTensor:
        return self

    def sparse_dim(self) -> int:
        return int(self._places.shape[0])

    def dense_dim(self) -> int:
        return len(self._shape) - self.sparse_dim()

    def is_coalesced(self) -> bool:
        return self._coalesced

    def __reduce_ex__(self, protocol: Any) -> Any:
        given = self._places, self._held.detach(), tuple(self._shape), self._coalesced
        return CooTensor.make, given

    def _coalesced_(self, coalesced: bool) -> Any:
        self.__dict__["_coalesced"] = coalesced
        return self

    def _indices(self) -> Any:
        return self._places

    def _values(self) -> Any:
        return self._held

    def indices(self) -> Any:
        self._check_coalesced("indices")
        return self._places

    def values(self) -> Any:
        self._check_coalesced("values")
        return self._held

    def _check_coalesced(self, name: str) -> None:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
            )


class CompressedTensor(SparseTensor):
    """A sparse matrix by rows or columns: where each begins, and places of elements across."""

    __slots__ = ()
    is_sparse = False
    names: tuple[str, str]
    _starts: Any
    _across: Any

    @classmethod
    def make(cls, starts: Any, across: Any, values: Any, shape: Any) -> Any:
        """Make a matrix.

        Args:
          starts: `(rows + 1,)` or `(columns + 1,)`, how many elements stand before each.
          across: `(elements,)`, their columns or rows.
          values: `(elements,)`.
        """
        made = cls._blank(shape, values)
        made.__dict__["_starts"], made.__dict__["_across"] = starts, across
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        given = self._starts, self._across, self._held.detach(), tuple(self._shape)
        return type(self).make, given

    def _with(self, values: Any) -> Any:
        return type(self).make(self._starts, self._across, values, self._shape)

    def values(self) -> Any:
        return self._held


class CsrTensor(CompressedTensor):
    """A sparse matrix by rows."""

    __slots__ = ()
    is_sparse_csr = True
    layout = sparse_csr
    names = "crow_indices", "col_indices"
    _kind = "SparseCsr"

    def crow_indices(self) -> Any:
        return self._starts

    def col_indices(self) -> Any:
        return self._across


class CscTensor(CompressedTensor):
    """A sparse matrix by columns."""

    __slots__ = ()
    layout = sparse_csc
    names = "ccol_indices", "row_indices"
    _kind = "SparseCsr"  # as PyTorch calls it

    def ccol_indices(self) -> Any:
        return self._starts

    def row_indices(self) -> Any:
        return self._across
