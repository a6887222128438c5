"""Storages as PyTorch shows them: what tensors that share memory have in common."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.dtypes import cpp_name, scalar_name

from ..._core.dtypes import device, dtype, uint8
from ..._core.handle import Handle
from ..._core.host_transfer import snapshot
from ..._core.python_data import is_sequence
from ..._core.trie import local, resting
from ..._core.vmap_checks import refuse_in_vmap
from ..._storage.addresses import start_of, storage_bytes
from ..._storage.autograd_roles import tag
from ..._storage.enter import enter
from ..._storage.shared_storage import storage_of
from ..._tracing.inputs import make
from .factories import empty
from .from_arrays import wrap
from .from_data import tensor
from .mapped_file import mapped_file

_warned = False


def _bytes(given: Any, device: Any) -> Any:
    """Make new memory: of so many bytes, or with these bytes."""
    if isinstance(given, int):
        return empty(given, dtype=uint8, device=device)
    if not is_sequence(given):
        raise RuntimeError(
            f"torch.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}"
        )
    for item in given:
        if not isinstance(item, int):
            raise RuntimeError(
                "torch.UntypedStorage(): tried to construct a storage from a sequence "
                f"({type(given).__name__}), but one of the items was of type "
                f"{type(item).__name__} instead of int"
            )
    return tensor([n % 256 for n in given], dtype=uint8, device=device)


class UntypedStorage:
    """The memory of a tensor, counted in bytes.

    Args:
      tensor: whose memory it is; a number of bytes, or bytes, make new memory.

    >>> import leafax
    >>> x = leafax.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1:].untyped_storage().data_ptr() == x.data_ptr()
    (24, True)
    """

    is_cuda = is_sparse = is_sparse_csr = False
    _mapped: Any = None

    def __init__(self, tensor: Any = 0, *, device: Any = None) -> None:
        if isinstance(tensor, np.memmap):  # a tensor is made of a file's bytes when they are used
            self._mapped = tensor
        else:
            self._tensor = tensor if isinstance(tensor, Handle) else _bytes(tensor, device)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file as memory; its slices are read when they are used.

        Args:
          shared: False; what is written to JAX's arrays does not get into files.
        """
        return cls(mapped_file(filename, shared, nbytes))

    @cached_property
    def _tensor(self) -> Any:
        return wrap(snapshot(self._mapped))

    def data_ptr(self) -> int:
        """Return a number that stands for the memory; 0 if it has no bytes."""
        return start_of(self._tensor) if self.nbytes() else 0

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        is_unread = self._mapped is not None and "_tensor" not in vars(self)
        return self._mapped.nbytes if is_unread else storage_bytes(self._tensor)

    __len__ = size = nbytes

    def untyped(self) -> UntypedStorage:
        """Return the memory itself."""
        return self

    def element_size(self) -> int:
        """Return 1: a byte."""
        return 1

    @property
    def device(self) -> device:
        """Return the device of the memory."""
        return self._tensor.device  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other.data_ptr() == self.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def whole(self, kind: dtype) -> Any:
        """Return all of it that makes elements of a dtype, as a vector that shares the memory."""
        store, trace = storage_of(self._tensor), local.trace
        value = enter(store.cell, trace)
        out = make(tag(trace, value, resting(value.aval, strides=value.strides)), trace)
        out._store, out._vc = store, store.vc
        store.members.append(ref(out))
        # In the order of memory: by columns, if it lies so.
        flat = out.reshape(-1) if value.strides is None else out.as_strided((out.numel(),), (1,), 0)
        if flat.dtype is kind:
            return flat
        whole = self.nbytes() // kind.itemsize * kind.itemsize
        return flat[: whole // flat.itemsize].view(kind)

    def _elements(self) -> Any:
        """Return its elements as a vector; writes to it do not count as those of a tensor."""
        return self.whole(uint8).data

    def fill_(self, value: Any) -> Any:
        """Set every byte."""
        self._elements().fill_(value % 256)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> Any:
        """Take over the bytes of memory of the same size."""
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> Any:
        """Return a copy of it."""
        return type(self)(self._elements().clone())

    def cpu(self) -> Any:
        """Return the same where it is on the processor already, else a copy there."""
        return self if self.device.type == "cpu" else type(self)(self._elements().cpu())

    def resizable(self) -> bool:
        """Tell whether it may grow: JAX's arrays are replaced by larger ones."""
        return True

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: XLA copies to its devices by itself."""
        return False

    def is_shared(self) -> bool:
        """Return False: other processes have memory of their own."""
        return False

    def __getitem__(self, index: Any) -> Any:
        """Return a byte as a number, which runs the program, or a part of a file that is mapped."""
        if isinstance(index, slice) and self._mapped is not None:
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            return type(self)(self._mapped[start:stop])
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        index += len(self) if index < 0 else 0
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError(
                "can only set storage content with a int types, but got "
                f"{type(value).__name__} instead"
            )
        if not -len(self) <= index < len(self):
            raise RuntimeError("out of bounds")
        self._elements()[index] = value % 256

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """Return the bytes; run the program."""
        return self.whole(uint8).tolist()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        rows = " " + "\n ".join(map(str, self.tolist())) + "\n"
        return f"{rows}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


class TypedStorage(UntypedStorage):
    """The memory of a tensor, counted in its elements."""

    @property
    def dtype(self) -> Any:
        """Return the dtype of an element."""
        return self._tensor.dtype

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._tensor.itemsize  # type: ignore[no-any-return]

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def untyped(self) -> UntypedStorage:
        """Return the same memory, counted in bytes."""
        return UntypedStorage(self._tensor)

    def tolist(self) -> list[Any]:
        """Return the elements; run the program."""
        return self.whole(self.dtype).tolist()  # type: ignore[no-any-return]

    def _elements(self) -> Any:
        return self.whole(self.dtype).data

    def __getitem__(self, index: Any) -> Any:
        """Return an element as a Python number; runs the program."""
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements().fill_(value)
        return self

    def __repr__(self) -> str:
        rows = "".join(f" {x}\n" for x in self.tolist())
        return (
            f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
            f"{self.size()}]"
        )


def untyped_storage(self: Any) -> UntypedStorage:
    """Return the tensor's memory, which its views share."""
    refuse_in_vmap("storage", self)
    return UntypedStorage(self)


def _typed_storage(self: Any) -> TypedStorage:
    return TypedStorage(self)


def storage(self: Any) -> TypedStorage:
    """Return the tensor's memory as elements, which its views share; PyTorch deprecates it."""
    global _warned
    refuse_in_vmap("storage", self)
    if not _warned:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
            stacklevel=2,
        )
    return TypedStorage(self)


def is_storage(obj: Any) -> bool:
    """Tell whether `obj` is the memory of a tensor."""
    return isinstance(obj, UntypedStorage)


def check_source(t: Any, source: UntypedStorage) -> None:
    """Check that `t.set_` can take this memory.

    Raises:
      RuntimeError: for elements of another dtype.
    """
    if isinstance(source, TypedStorage) and source.dtype is not t.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {cpp_name(t._v.dtype)} or an UntypedStorage, but got type "
            f"{scalar_name(source.dtype.np)} for argument 1 'storage'"
        )


__all__ = ["TypedStorage", "UntypedStorage", "is_storage", "storage", "untyped_storage"]
