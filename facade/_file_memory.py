"""Tensors and arrays in the files of `save`, as they lay: those on one memory share it when loaded.

A tensor is a member of the file by itself, row by row. Where several are on one memory, or one is
on a part of it, the whole memory is the member, and each says where it lies in there.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._copied_memory import placed
from ._dtype import of
from ._enter import from_array
from ._layout import is_dense
from ._storages import UntypedStorage
from ._strided import lie
from ._trace import local
from ._writes import written


class Parts:
    """What a file holds beside its structure; `Loaded` reads it."""

    def __init__(self) -> None:
        self._tensors: list[Any] = []
        self._facts: dict[int, dict[str, Any]] = {}
        self._memories: dict[int, tuple[Any, list[dict[str, Any]]]] = {}
        self._arrays: dict[int, tuple[np.ndarray, list[Any]]] = {}

    def add(self, t: Any) -> dict[str, Any]:
        """How the structure tells of a tensor: one that it has told of already is the same."""
        if id(t) in self._facts:
            return self._facts[id(t)]
        name = np.dtype(t._v.dtype).name
        facts = [len(self._tensors), name, list(t.shape), bool(t.requires_grad)]
        told: dict[str, Any] = {"tensor": facts, "leaf": bool(t.is_leaf)}
        self._tensors.append(t)
        self._facts[id(t)] = told
        if t.is_conj() or t.is_neg():  # by itself
            told["lazy"] = "conj" if t.is_conj() else "neg"
            return told
        strides = tuple(t.stride())
        if not t.is_contiguous():
            told["strides"] = strides
        if t._shares and t._store is not None:
            memory = UntypedStorage(t)
            _, members = self._memories.setdefault(memory.data_ptr(), (memory, []))
            told["strides"], told["offset"] = strides, t.storage_offset()
            members.append(told)
        return told

    def add_array(self, x: np.ndarray) -> list[Any]:
        """How the structure tells of an array of NumPy."""
        _, told = self._arrays.setdefault(id(x), (x, [len(self._arrays), x.dtype.str, x.shape]))
        return told

    def write(self, archive: Any) -> list[list[Any]]:
        """Write all of it; returns dtype and length of each memory, for the structure."""
        memories: list[list[Any]] = []
        for memory, members in self._memories.values():
            if len(members) == 1 and _is_all(members[0], memory.nbytes()):
                del members[0]["offset"]
                continue
            kind = of(memory._tensor._store.cell._v.dtype)
            flat = memory.whole(kind)
            for told in members:
                told["memory"] = len(memories)
            archive.writestr(f"memory/{len(memories)}", _bytes(flat))
            memories.append([np.dtype(flat._v.dtype).name, flat.numel()])
        for t, told in zip(self._tensors, self._facts.values(), strict=True):
            if "memory" not in told:
                archive.writestr(f"data/{told['tensor'][0]}", _bytes(_plain(t)))
        for x, (k, *_) in self._arrays.values():
            archive.writestr(f"array/{k}", np.ascontiguousarray(x).tobytes())
        return memories


def _is_all(told: dict[str, Any], nbytes: int) -> bool:
    """Whether a tensor is all of its memory, without gaps or elements that coincide."""
    _, name, shape, _ = told["tensor"]
    whole = math.prod(shape) * jnp.dtype(name).itemsize == nbytes
    return whole and told["offset"] == 0 and is_dense(tuple(shape), told["strides"])


def _plain(t: Any) -> Any:
    """The values that the memory of a lazily conjugated or negated tensor holds."""
    t = t.detach()
    if t.is_conj():
        return t.conj()
    return -t if t.is_neg() else t


def _bytes(t: Any) -> bytes:
    return np.ascontiguousarray(np.asarray(t.detach().jax())).tobytes()


class Loaded:
    """The tensors and arrays of a file that `Parts` wrote, each made once.

    Args:
      header: the structure, which has the memories' dtypes and lengths.
      moved: takes a new tensor to the device that it is for.
    """

    def __init__(self, archive: Any, header: Any, moved: Any) -> None:
        self._archive, self._moved = archive, moved
        self._memories = header.get("memories", [])
        self._flat: dict[int, Any] = {}
        self._made: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}

    def tensor(self, told: dict[str, Any]) -> Any:
        """The tensor that the structure tells of."""
        k = told["tensor"][0]
        if k not in self._made:
            self._made[k] = self._make(told)
        return self._made[k]

    def array(self, k: int, name: str, shape: list[int]) -> np.ndarray:
        """The array of NumPy that the structure tells of."""
        if k not in self._arrays:
            data = self._archive.read(f"array/{int(k)}")
            self._arrays[k] = np.frombuffer(data, name).reshape(shape).copy()
        return self._arrays[k]

    def _make(self, told: dict[str, Any]) -> Any:
        k, name, shape, needs = told["tensor"]
        strides = tuple(told["strides"]) if "strides" in told else None
        if "memory" in told:
            kind = of(jnp.dtype(name))
            out = placed(self._memory(told["memory"]), kind, told["offset"], tuple(shape), strides)
        else:
            out = self._read(f"data/{int(k)}", name, shape)
            if strides is not None and is_dense(tuple(shape), strides):
                out = lie(out, strides)
            if "lazy" in told:
                from . import _neg_view

                out = written((out.conj() if told["lazy"] == "conj" else _neg_view(out)).data)
            out = self._moved(out)
        return out.requires_grad_() if needs else out

    def _memory(self, place: int) -> Any:
        if place not in self._flat:
            name, length = self._memories[place]
            flat = self._read(f"memory/{int(place)}", name, [length])
            self._flat[place] = self._moved(flat)
        return self._flat[place]

    def _read(self, member: str, name: str, shape: Any) -> Any:
        array = np.frombuffer(self._archive.read(member), jnp.dtype(name)).reshape(shape)
        with jax.enable_x64(True):
            return written(from_array(jnp.asarray(array), inference=local.mode.inference))
