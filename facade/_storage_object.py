"""`Tensor.storage()` and `untyped_storage()`: a tensor's memory as an object, to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._bits import storage_numel


class UntypedStorage:
    """A tensor's memory, in bytes."""

    def __init__(self, t: Any) -> None:
        self._t = t

    def nbytes(self) -> int:
        """Bytes of the whole memory, of which the tensor may see a part."""
        return storage_numel(self._t) * int(self._t.itemsize)

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """A number that tensors on this memory share; no address."""
        return int(self._t.data_ptr())

    @property
    def device(self) -> Any:
        return self._t.device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other.data_ptr() == self.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())


class TypedStorage:
    """A tensor's memory as elements of the tensor's dtype."""

    def __init__(self, t: Any) -> None:
        self._t = t

    def size(self) -> int:
        """How many elements the memory has; the tensor may see a part of them."""
        return storage_numel(self._t)

    __len__ = size

    def nbytes(self) -> int:
        """Bytes of the whole memory."""
        return self.untyped().nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self._t.itemsize)

    def data_ptr(self) -> int:
        """A number that tensors on this memory share; no address."""
        return int(self._t.data_ptr())

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return UntypedStorage(self._t)

    def tolist(self) -> list[Any]:
        """All elements as Python numbers; runs the program."""
        whole = self._t if self._t._store is None else self._t._store.cell
        return whole.detach().reshape(-1).tolist()  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    @property
    def dtype(self) -> Any:
        return self._t.dtype

    @property
    def device(self) -> Any:
        return self._t.device


def storage(self: Any) -> TypedStorage:
    """This tensor's memory as elements of its dtype.

    >>> import leafax
    >>> len(leafax.zeros(5)[2:].storage())
    5
    """
    return TypedStorage(self)


def untyped_storage(self: Any) -> UntypedStorage:
    """This tensor's memory in bytes."""
    return UntypedStorage(self)
