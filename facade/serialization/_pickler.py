"""A pickler whose files PyTorch reads: tensors, dtypes and modules have PyTorch's names there."""

from __future__ import annotations

import functools
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from leafax.functional.ops.shape.strides import contiguous_strides

from .._core.dtypes import device, of
from .._core.handle import Handle, users_attributes
from .._core.memory_format import layout
from .._ops.creation.storage_objects import TypedStorage, UntypedStorage
from .._rules.strides.layouts import is_dense
from .._tensor.copying import _warn_of_hooks
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from . import _rebuild
from ._kinds import TYPES, StorageType, type_of
from ._locations import location_tag
from ._names import _get_layout, torch_name

_PYTHON: Any = pickle._Pickler  # type: ignore[attr-defined]


class _Part:
    """The memory of a tensor that shares it with nobody."""

    def __init__(self, t: Any) -> None:
        self.t = t


class Memories:
    """The memories of what is pickled, by the keys that the file has for them."""

    def __init__(self) -> None:
        self._keys: dict[Any, str] = {}
        self._kinds: dict[Any, Any] = {}
        self._held: list[Any] = []  # so that a number that stands for a memory stays its own
        self.numels: dict[str, int] = {}
        self._data: dict[str, Any] = {}

    def note(self, storage: Any, kind: Any) -> tuple[str, int]:
        """Return the key and the number of elements of a memory."""
        if isinstance(storage, _Part):
            key, numel, data = id(storage.t), storage.t.numel(), storage.t
        else:
            key, numel = storage.data_ptr() or id(storage), storage.nbytes() // kind.itemsize
            data = storage
        if self._kinds.setdefault(key, kind) is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        self._held.append(storage)
        name = self._keys.setdefault(key, str(len(self._keys)))
        self.numels[name] = numel
        self._data[name] = data, kind
        return name, numel

    def bytes_of(self, name: str) -> Any:
        """Return the bytes of a memory, as they lie."""
        data, kind = self._data[name]
        if isinstance(data, UntypedStorage):
            data = data.whole(kind)
        return _bytes(_plain(data))

    def __iter__(self) -> Any:
        return iter(self.numels)


class _Data:
    """The values of a parameter, as a tensor without history: `data` of it would share memory."""

    def __init__(self, t: Any) -> None:
        self.t = t


def _plain(t: Any) -> Any:
    """Return the values that the memory of a lazily conjugated or negated tensor holds."""
    if t.is_conj():
        return t.detach().conj()
    return -t.detach() if t.is_neg() else t


def _bytes(t: Any) -> Any:
    array, strides = np.asarray(t.jax()), t.stride()
    if not t.is_contiguous() and is_dense(array.shape, strides):
        array = array.transpose(sorted(range(array.ndim), key=lambda d: -strides[d]))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _reduced(t: Any, requires_grad: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return the call that makes the tensor again, without what users set on it."""
    storage: Any
    size, stride, offset = tuple(t.shape), tuple(t.stride()), t.storage_offset()
    if t.is_meta:
        return _rebuild._rebuild_meta_tensor_no_storage, (t.dtype, size, stride, requires_grad)
    if t._shares and t._store is not None and not (t.is_conj() or t.is_neg()):
        storage = UntypedStorage(t)
    else:
        storage, offset = _Part(t), 0
        if not is_dense(size, stride):
            stride = contiguous_strides(size)
    args: tuple[Any, ...] = (
        _Typed(storage, t.dtype),
        offset,
        size,
        stride,
        requires_grad,
        OrderedDict(),
    )
    bits = {name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on}
    extra = (bits,) if bits else ()
    if type_of(t.dtype.np).name == "UntypedStorage":
        return _rebuild._rebuild_tensor_v3, (*args, t.dtype, *extra)
    return _rebuild._rebuild_tensor_v2, (*args, *extra)


class _Typed:
    """A memory as a pickle tells of it: with a dtype."""

    def __init__(self, storage: Any, kind: Any) -> None:
        self.storage, self.kind = storage, kind


def _parts(t: Any) -> Any:
    """Return what `__reduce_ex__` of PyTorch's tensors returns."""
    _warn_of_hooks(t)
    kind, state = type(t), users_attributes(t) or None
    if issubclass(kind, Parameter):
        given: tuple[Any, ...] = _Data(t), bool(t.requires_grad), OrderedDict()
        if state is None:
            return _rebuild._rebuild_parameter, given
        return _rebuild._rebuild_parameter_with_state, (*given, state)
    func, args = _reduced(t, bool(t.requires_grad))
    if kind is Tensor and state is None:
        return func, args
    return _rebuild._rebuild_from_type_v2, (func, kind, args, state)


_OWN = (Tensor.__reduce_ex__, Parameter.__reduce_ex__)


class _Names:
    """The part of a pickler that gives PyTorch's names to what leafax has."""

    memories: Memories
    stream: bool

    def persistent_id(self, x: Any) -> Any:
        """Return the entry by which a file names memory; None for other objects."""
        if isinstance(x, TypedStorage):
            x = _Typed(UntypedStorage(x._tensor), x.dtype)
        elif isinstance(x, UntypedStorage):
            x = _Typed(x, of(np.dtype(np.uint8)))
            kind: Any = TYPES["UntypedStorage"]
        if not isinstance(x, _Typed):
            return None
        kind = type_of(x.kind.np)
        key, numel = self.memories.note(x.storage, x.kind)
        owner = x.storage.t if isinstance(x.storage, _Part) else x.storage
        if kind.name == "UntypedStorage":
            numel *= x.kind.itemsize
        told = "storage", kind, key, location_tag(owner), numel
        return (*told, None) if self.stream else told  # None: it is no part of another

    def reducer_override(self, x: Any) -> Any:
        """Return how to make an object of leafax again; NotImplemented for others."""
        if isinstance(x, Handle) and type(x).__reduce_ex__ in _OWN:
            return _parts(x)
        if isinstance(x, _Data):
            return _reduced(x.t, False)
        if isinstance(x, layout):
            return _get_layout, (repr(x),)
        if isinstance(x, StorageType):
            return x.name
        if isinstance(x, device):
            return device, ((x.type,) if x.index is None else (x.type, x.index))
        known = torch_name(x) if isinstance(x, (type, FunctionType)) else None
        return NotImplemented if known is None else known[1]

    def save_global(self, x: Any, name: str | None = None) -> None:
        """Write the name of a class or function."""
        known = torch_name(x, name)
        if known is None:
            super().save_global(x, name)  # type: ignore[misc]
            return
        module, qualified = known
        self.write(f"c{module}\n{qualified}\n".encode())  # type: ignore[attr-defined]
        self.memoize(x)  # type: ignore[attr-defined]


@functools.cache
def pickler_class(pickle_module: Any) -> Any:
    """Return the pickler of a module that is like `pickle`.

    Raises:
      ValueError: its pickler is not made of the one that is written in Python.
    """
    base = _PYTHON if pickle_module in (None, pickle) else pickle_module.Pickler
    if not issubclass(base, _PYTHON):
        raise ValueError(
            f"leafax.save cannot use the pickler of {pickle_module.__name__}, which cannot write "
            "other names than Python's; leave pickle_module out"
        )
    return type("TorchPickler", (_Names, base), {})


def dump(obj: Any, file: Any, pickle_module: Any, protocol: int, stream: bool = False) -> Memories:
    """Pickle an object into a file; returns the memories that it refers to.

    Args:
      stream: the file is of the legacy format.
    """
    pickler = pickler_class(pickle_module)(file, protocol)
    pickler.stream = stream
    pickler.memories = Memories()
    pickler.dump(obj)
    return pickler.memories  # type: ignore[no-any-return]
