"""Devices in files: where memory was, and where `map_location` says that it is to be."""

from __future__ import annotations

import re
from typing import Any

from .. import cuda
from .._core.dtypes import device
from .._ops.creation.storage_objects import UntypedStorage
from ._memory import FileMemory

_packages: list[tuple[int, Any, Any]] = []


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Register functions that tell where memory is on saving, and bring it there on loading.

    Args:
      priority: those with lower numbers are asked first; PyTorch's own begin at 10.
      tagger: takes memory, returns the name of its place or None.
      deserializer: takes memory and a name, returns memory in that place or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Return the name of the place where memory is, as files have it."""
    for _, tagger, _ in _packages:
        found = tagger(storage)
        if found:
            return str(found)
    where = storage.device
    if where.type == "meta":
        return "meta"
    return f"cuda:{where.index or 0}" if where.type == "cuda" else "cpu"


def default_restore_location(storage: Any, location: str) -> Any:
    """Memory at the place that a file names.

    Raises:
      RuntimeError: there is no such place here.
    """
    for _, _, deserializer in _packages:
        found = deserializer(storage, location)
        if found is not None:
            return found
    where = _device(location)
    if where is None:
        raise RuntimeError(
            "don't know how to restore data location of torch.storage."
            f"{type(storage).__name__} (tagged with {location})"
        )
    return storage if location == "cpu" else UntypedStorage(storage._tensor.to(where))


def _device(location: str) -> device | None:
    if location.split(":")[0] in ("cpu", "meta"):
        return device(location)
    if re.match("cuda(:|[0-9]+|$)", location):
        return _gpu(location)
    return device(location) if location.split(":")[0] == "tpu" else None


def _gpu(location: str) -> device:
    where = device(location if location.startswith("cuda:") else "cuda")
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    count = cuda.device_count()
    if (where.index or 0) >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {where.index} but "
            f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to map "
            "your storages to an existing device."
        )
    return where


def restore(memory: FileMemory, location: str, map_location: Any) -> None:
    """Put the tensors of a file's memory where they belong.

    Memory that was on a CPU goes where new tensors are made, unless `map_location` says "cpu".
    """
    chosen = map_location is not None
    if isinstance(map_location, dict):
        chosen, location = location in map_location, map_location.get(location, location)
    elif isinstance(map_location, (str, bytes, device)):
        location = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
    elif chosen:
        plain = UntypedStorage(memory._tensor)
        found = map_location(plain, location)
        if found is None:
            found = default_restore_location(plain, location)
        memory.adopt(found)
        return
    if isinstance(location, device):
        location = str(location)
    if _packages:
        plain = UntypedStorage(memory._tensor)
        memory.adopt(default_restore_location(plain, location))
        return
    where = _device(location)
    if where is None:
        default_restore_location(UntypedStorage(memory._tensor), location)
    elif chosen or where.type != "cpu":
        assert where is not None
        memory.move(where)
