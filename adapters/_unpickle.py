"""Read PyTorch checkpoints without torch and without running code.

A checkpoint is a pickle in which each tensor is a call of `torch._utils._rebuild_tensor_v2` on a
storage, and each storage is a persistent id whose bytes lie elsewhere: behind the pickle in the
legacy stream, in records `data/<key>` of the zip format. The readers here admit only those calls,
`collections.OrderedDict` and torch's storage classes; whatever else a pickle asks for is refused
by name. Tensors are first noted down as `_TensorRef` and become arrays when the bytes are there.
"""

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from typing import Any, BinaryIO, NamedTuple, TypeGuard

import ml_dtypes
import numpy as np

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001
_ZIP_START = b"PK\x03\x04"
_CHUNK = 1 << 24  # bytes; a file that lies about its size cannot make us allocate more than it has

_STORAGE_DTYPES = {
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "BoolStorage": np.dtype(np.bool_),
    "ByteStorage": np.dtype(np.uint8),
    "CharStorage": np.dtype(np.int8),
    "ComplexDoubleStorage": np.dtype(np.complex128),
    "ComplexFloatStorage": np.dtype(np.complex64),
    "DoubleStorage": np.dtype(np.float64),
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "IntStorage": np.dtype(np.int32),
    "LongStorage": np.dtype(np.int64),
    "ShortStorage": np.dtype(np.int16),
}

# What the standard unpickler lets through when a pickle's opcodes make no sense.
_MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)

_Saved = tuple[Any, dict[str, np.ndarray[Any, Any]]]  # the object, and the storages it refers to


class _StorageType(NamedTuple):
    """Stands for a class such as `torch.FloatStorage`."""

    dtype: np.dtype[Any]


class _StorageRef(NamedTuple):
    """A storage whose bytes are not read yet: `numel` elements of `dtype` under `key`."""

    key: str
    dtype: np.dtype[Any]
    numel: int


class _TensorRef(NamedTuple):
    """A strided window on a storage; offset and strides count elements, as in torch."""

    storage: _StorageRef
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


# The stand-ins have no `__dict__`, so that a pickle's BUILD opcode cannot change what they do.
class _RebuildTensor:
    __slots__ = ()

    def __call__(
        self,
        storage: object,
        offset: object,
        shape: object,
        strides: object,
        requires_grad: object = False,
        hooks: object = None,
        metadata: object = None,
    ) -> _TensorRef:
        if type(storage) is not _StorageRef or not _is_size(offset):
            raise pickle.UnpicklingError("a tensor of the checkpoint has no storage or no offset")
        if not (_is_sizes(shape) and _is_sizes(strides) and len(shape) == len(strides)):
            raise pickle.UnpicklingError(
                f"a tensor of the checkpoint has shape {shape!r} and strides {strides!r}"
            )
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if 0 not in shape and offset + last >= storage.numel:
            raise pickle.UnpicklingError(
                f"a tensor of shape {shape} and strides {strides} at offset {offset} reaches beyond"
                f" its storage of {storage.numel} elements"
            )
        if metadata:
            raise pickle.UnpicklingError(
                f"a tensor of the checkpoint carries metadata {metadata!r}; resolve it in torch"
                " (`resolve_conj`, `resolve_neg`) before saving"
            )
        return _TensorRef(storage, offset, shape, strides)


class _RebuildParameter:
    __slots__ = ()

    def __call__(self, data: object, requires_grad: object, hooks: object) -> _TensorRef:
        if type(data) is not _TensorRef:
            raise pickle.UnpicklingError("a parameter of the checkpoint holds no tensor")
        return data


_GLOBALS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
}
_GLOBALS.update(
    ((module, name), _StorageType(dtype))
    for module in ("torch", "torch.cuda")
    for name, dtype in _STORAGE_DTYPES.items()
)


class _Unpickler(pickle.Unpickler):
    """A pickle reader that admits `_GLOBALS` and torch's persistent ids of storages."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _GLOBALS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"the checkpoint asks for `{module}.{name}`, which is neither a tensor, a storage"
                " nor an OrderedDict; save a plain `state_dict()` instead"
            ) from None

    def persistent_load(self, saved_id: Any) -> _StorageRef:
        match saved_id:
            case ("storage", _StorageType(dtype), str(key), _, numel) if _is_size(numel):
                return _StorageRef(key, dtype, numel)
            case ("storage", _StorageType(dtype), str(key), _, numel, None) if _is_size(numel):
                return _StorageRef(key, dtype, numel)
        raise pickle.UnpicklingError(
            f"the checkpoint refers to {saved_id!r}, which is not a storage of tensors"
        )


class _Recorder(_Unpickler):
    """An unpickler that remembers in `storages` the storages it met."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages: dict[str, _StorageRef] = {}

    def persistent_load(self, saved_id: Any) -> _StorageRef:
        ref = super().persistent_load(saved_id)
        if self.storages.setdefault(ref.key, ref) != ref:
            raise pickle.UnpicklingError(f"storage `{ref.key}` is described in two ways")
        return ref


def load_checkpoint(
    path: str | os.PathLike[str], *, key: str | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Read the tensors of a file that `torch.save` wrote, without torch and without running code.

    Both formats are read: the zip archives of torch >= 1.6 and the legacy stream before. A file
    that names anything but tensors, storages and `OrderedDict` is refused.

    Args:
        path: the checkpoint, a `state_dict` or a dict that holds one.
        key: where in the checkpoint the state dict is, as `"state_dict"` or `"model"`; None
            means that the checkpoint is the state dict.

    Returns:
        Name -> array with the shape, dtype and strides saved, in the file's order; bfloat16 is
        `ml_dtypes.bfloat16`. Tensors that shared a storage share their memory here too.

    Raises:
        pickle.UnpicklingError: the file is truncated, is no checkpoint, or asks for something
            that is not admitted (the message names it).
        ValueError: the checkpoint is not a dict of tensors.

    Example:
        >>> load_checkpoint("model.pth")["fc.weight"].shape  # doctest: +SKIP
        (1000, 1280)
    """
    with open(path, "rb") as file:
        try:
            saved, storages = (_read_zip if file.peek(4)[:4] == _ZIP_START else _read_legacy)(file)
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(f"cannot read `{os.fspath(path)}`: {error}") from None
        except (EOFError, zipfile.BadZipFile) as error:
            raise pickle.UnpicklingError(
                f"cannot read `{os.fspath(path)}`: it is truncated or damaged ({error})"
            ) from error
        except _MALFORMED as error:
            raise pickle.UnpicklingError(
                f"cannot read `{os.fspath(path)}`: its pickle is malformed ({error})"
            ) from error
    refs = _state_dict(saved, key)
    return {name: _array(ref, storages[ref.storage.key]) for name, ref in refs.items()}


def _read_legacy(file: BinaryIO) -> _Saved:
    """Read the stream: magic number, protocol, system info, pickle, storage keys, storages."""
    try:
        magic = _Unpickler(file).load()
    except (pickle.UnpicklingError, *_MALFORMED):
        magic = None
    if magic != _MAGIC_NUMBER:
        raise pickle.UnpicklingError("it is not a file that `torch.save` wrote")
    protocol = _Unpickler(file).load()
    if protocol != _PROTOCOL_VERSION:
        raise pickle.UnpicklingError(f"its protocol is {protocol!r}, not {_PROTOCOL_VERSION}")
    _Unpickler(file).load()  # sizes of C types where it was saved; the numbers are little-endian
    unpickler = _Recorder(file)
    saved = unpickler.load()
    storages = {}
    for name in _Unpickler(file).load():
        ref = unpickler.storages[name]
        (numel,) = _read_numbers(file, np.dtype("<i8"), 1)
        if numel != ref.numel:
            raise pickle.UnpicklingError(
                f"storage `{name}` has {numel} elements where its tensors expect {ref.numel}"
            )
        storages[name] = _read_numbers(file, ref.dtype, ref.numel)
    if len(storages) != len(unpickler.storages):
        raise EOFError(f"{len(storages)} of {len(unpickler.storages)} storages are there")
    return saved, storages


def _read_zip(file: BinaryIO) -> _Saved:
    """Read the archive: one folder with `data.pkl`, and each storage's bytes in `data/<key>`."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        pickles = [name for name in names if name.split("/")[1:] == ["data.pkl"]]
        if len(pickles) != 1:
            raise pickle.UnpicklingError("it is a zip archive without torch's `data.pkl`")
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise pickle.UnpicklingError("it was saved on a big-endian machine")
        unpickler = _Recorder(io.BytesIO(archive.read(pickles[0])))
        saved = unpickler.load()
        storages = {}
        for name, ref in unpickler.storages.items():
            with archive.open(f"{root}data/{name}") as record:
                storages[name] = _read_numbers(record, ref.dtype, ref.numel)
    return saved, storages


def _read_numbers(file: Any, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """Return a writable `dtype[count]` read from `file`; `EOFError` where it holds less."""
    chunks, left = [], count * dtype.itemsize
    while left and (chunk := file.read(min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    if left:
        raise EOFError(f"{left} of {count * dtype.itemsize} bytes are missing")
    return np.frombuffer(bytearray().join(chunks), dtype)


def _state_dict(saved: object, key: str | None) -> dict[str, _TensorRef]:
    """Return the dict of tensors that was saved, or the one under `key`."""
    entries = _entries(saved)
    if key is not None:
        if key not in entries:
            raise ValueError(f"the checkpoint has no entry `{key}`; {_summary(entries)}")
        entries = _entries(entries[key])
    for name, value in entries.items():
        if type(name) is not str or type(value) is not _TensorRef:
            raise ValueError(
                f"entry `{name}` of the checkpoint is a {type(value).__name__}, not a tensor; name"
                f" the entry that holds the state dict with `key=...`; {_summary(entries)}"
            )
    return entries


def _entries(saved: object) -> dict[Any, Any]:
    if not isinstance(saved, dict):
        raise ValueError(f"the checkpoint holds a {type(saved).__name__}, not a dict of tensors")
    return dict(dict.items(saved))


def _summary(entries: dict[Any, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in list(entries)[:8])
    return f"its entries are {names}{', ...' if len(entries) > 8 else ''}"


def _array(ref: _TensorRef, storage: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `ref` as a view of its storage, in which it lies (`_RebuildTensor` checked that)."""
    if 0 in ref.shape:
        return np.empty(ref.shape, storage.dtype)
    strides = tuple(s * storage.itemsize for s in ref.strides)
    return np.lib.stride_tricks.as_strided(storage[ref.offset :], ref.shape, strides)


def _is_size(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_sizes(value: object) -> TypeGuard[tuple[int, ...]]:
    return type(value) is tuple and all(_is_size(item) for item in value)
