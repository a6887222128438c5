"""The two kinds of datasets, and how samples of each are fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from .sampler import Sampler


class _DatasetKind:
    """By key, or one after the other."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        """Make what fetches batches of a dataset of this kind."""
        cls = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """No keys, without end: of datasets that are iterated over."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None
