"""Samplers: the order in which a loader takes samples, drawn by NumPy beside all programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from leafax.functional.program.op import TABLE as _TABLE

from ..._core.dtypes import float64
from ..._ops.calls.functions import function as _function
from ..._ops.creation.from_data import as_tensor
from ..._ops.creation.generator import Generator, default_generator

multinomial = _function(_TABLE["multinomial"])

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip

_T_co = TypeVar("_T_co", covariant=True)
_AT_ONCE = 4096  # indices that are drawn together, with replacement


class Sampler(Generic[_T_co]):
    """An order of keys, or of lists of them: a subclass has `__iter__` and mostly `__len__`."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All keys from 0 on."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Keys by chance: all in another order each time, or `num_samples` of them.

    >>> import leafax
    >>> order = leafax.utils.data.RandomSampler(range(5))
    >>> sorted(order)
    [0, 1, 2, 3, 4]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={self.replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """Return how many keys are drawn: as many as there are now, if nothing was said."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        draw = (self.generator or default_generator)._for_numpy()
        while left > 0:
            if self.replacement:
                some = draw.integers(n, size=min(left, _AT_ONCE))
            else:
                some = draw.permutation(n)[:left]
            left -= len(some)
            yield from some.tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given keys, in another order each time."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        draw = (self.generator or default_generator)._for_numpy()
        for i in draw.permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Keys by chance, each as probable as its weight says."""

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_count(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        found = as_tensor(weights, dtype=float64)
        if len(found.shape) != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(found.shape)}"
            )
        self.weights = found
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = self.weights.numpy()
        fits = self.replacement or self.num_samples <= np.count_nonzero(weights)
        if not fits or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.sum() > 0:
            yield from multinomial(  # which knows what to say
                self.weights, self.num_samples, self.replacement, generator=self.generator
            ).tolist()
            return
        draw = (self.generator or default_generator)._for_numpy()
        if self.replacement:
            below = np.cumsum(weights)
            drawn = draw.random(self.num_samples) * below[-1]
            last = np.flatnonzero(weights)[-1]
            yield from np.minimum(np.searchsorted(below, drawn, "right"), last).tolist()
        else:  # the first of so many that wait, each for 1 / weight on the average
            with np.errstate(divide="ignore"):
                waits = draw.exponential(size=weights.size) / weights
            yield from np.argsort(waits)[: self.num_samples].tolist()

    def __len__(self) -> int:
        return self.num_samples


def _is_count(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n > 0


class BatchSampler(Sampler[list[int]]):
    """Lists of the keys that another sampler gives.

    >>> import leafax
    >>> list(leafax.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_count(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
