"""Small inputs that stay the same from run to run: they enter a compiled program as one array.

Handing XLA an array takes a microsecond, whatever its size, and the frozen layers of a model have
hundreds of short vectors: the statistics and scales of their norms. So those are put one after
the other into one array a dtype, once, and the program takes them apart again, which costs it
nothing that shows. That they are still the same arrays is asked before every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import ref

import jax
import numpy as np
from jax import lax

from ..program.meta import META
from ..program.program import Aval, Input, Program

_LITTLE = 16 << 10  # bytes that one may have: larger ones are worth their microsecond
_FEWEST = 16  # inputs, for it to be worth while
_SETS = 8  # of arrays that are remembered: of models of one kind, which threads may train
_PATIENCE = 4  # new sets in a row, until it is clear that these inputs change


class _Set(NamedTuple):
    """Arrays that were packed; weakly held, so that nobody's memory is kept."""

    packs: tuple[Any, ...]
    alive: tuple[ref[Any], ...]


class Packing:
    """Choice of the inputs of a program that are packed, and their places in the packs.

    Args:
      avals: of all inputs.
      places: those that are packed.

    Attributes:
      rest: the other inputs, in order; they follow the packed arrays.
    """

    def __init__(self, avals: Sequence[Aval], places: Sequence[int]) -> None:
        self._avals = avals
        self._by_dtype: dict[Any, list[int]] = {}
        for i in places:
            self._by_dtype.setdefault(avals[i].dtype, []).append(i)
        self._places = [i for group in self._by_dtype.values() for i in group]
        packed = set(self._places)
        self.rest = [i for i in range(len(avals)) if i not in packed]
        self._pick, self._pick_rest = itemgetter(*self._places), _picking(self.rest)
        self._sets: dict[tuple[int, ...], _Set] = {}
        self._missed = 0

    @classmethod
    def of(cls, program: Program, frozen: Sequence[int], donate: Sequence[int]) -> Packing | None:
        """Return how the `frozen` ones of the inputs are packed; None if that is not worth it."""
        avals = [e.avals[0] for e in program.entries if isinstance(e, Input)]
        places = [i for i in frozen if i not in donate and _is_little(avals[i])]
        return cls(avals, places) if len(places) >= _FEWEST else None

    def donated(self, donate: Sequence[int]) -> tuple[int, ...]:
        """Return where these inputs are among the program's arguments."""
        first = len(self._by_dtype)
        return tuple(first + self.rest.index(i) for i in donate)

    def unpacked(self, given: Sequence[Any]) -> list[Any]:
        """Take all inputs of the program out of its arguments; traced by JAX."""
        args: list[Any] = [None] * len(self._avals)
        for i, x in zip(self.rest, given[len(self._by_dtype) :], strict=True):
            args[i] = x
        for pack, group in zip(given, self._by_dtype.values(), strict=False):
            at = 0
            for i in group:
                shape = self._avals[i].shape
                end = at + math.prod(shape)
                args[i] = lax.reshape(lax.slice(pack, (at,), (end,)), shape)
                at = end
        return args

    def packed(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        """Make the program's arguments of all its inputs; None if these cannot be packed."""
        little = self._pick(args)
        key = tuple(map(id, little))
        found = self._sets.get(key)
        if found is None:
            found = self._pack(key, little)
            if found is None:
                return None
        elif self._missed:
            self._missed = 0
        return (*found.packs, *self._pick_rest(args))

    def _pack(self, key: tuple[int, ...], little: Sequence[Any]) -> _Set | None:
        self._missed += 1
        if self._missed > _PATIENCE:
            return None
        try:
            where = _device_of(little)
        except _OnSeveralDevices:
            return None
        arrays = dict(zip(self._places, little, strict=True))
        packs = tuple(
            jax.device_put(
                np.concatenate([np.asarray(arrays[i]).reshape(-1) for i in group]), where
            )
            for group in self._by_dtype.values()
        )
        # One of these ids may be another array's as soon as the array is gone.
        me = ref(self)  # no cycle: the packs go with the program

        def gone(_: Any) -> None:
            packing = me()
            if packing is not None:
                packing._sets.pop(key, None)

        alive = tuple([ref(x, gone) for x in little])
        for old in list(self._sets)[: max(0, len(self._sets) - _SETS + 1)]:
            self._sets.pop(old, None)
        made = self._sets[key] = _Set(packs, alive)
        return made


def _picking(places: list[int]) -> Any:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda args: tuple([args[i] for i in places])


def _is_little(aval: Aval) -> bool:
    """Return True for a short vector: XLA reads one where it lies, and would copy a kernel."""
    size = math.prod(aval.shape) * aval.dtype.itemsize
    there = not aval.weak and aval.device is not META
    return there and len(aval.shape) == 1 and 0 < size <= _LITTLE


class _OnSeveralDevices(Exception):
    """Arrays that do not lie on one device."""


def _device_of(arrays: Sequence[Any]) -> Any:
    """Return where all arrays lie, None if that is where arrays go by themselves.

    Arrays of NumPy are on their way to the device: they go where the others are.
    """
    placed = [x for x in arrays if isinstance(x, jax.Array)]
    if len(placed) + sum(type(x) is np.ndarray for x in arrays) < len(arrays):
        raise _OnSeveralDevices
    if not placed:
        return None
    where, committed = placed[0].sharding, placed[0].committed
    if not isinstance(where, jax.sharding.SingleDeviceSharding):
        raise _OnSeveralDevices
    if not all(x.sharding == where and x.committed == committed for x in placed):
        raise _OnSeveralDevices
    return where if committed else None
