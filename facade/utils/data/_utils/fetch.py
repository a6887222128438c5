"""Samples fetched from a dataset, in the process that loads or in a worker."""

from __future__ import annotations

from typing import Any

from ._own_program import compute, own_program
from ._rows import rows_of


class _BaseDatasetFetcher:
    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes the next samples, whatever the index; of that only the length counts."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        with own_program():
            return self._fetched(possibly_batched_index)

    def _fetched(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in possibly_batched_index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
            compute()
        if not data or self.drop_last and len(data) < len(possibly_batched_index):
            raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Takes the samples at the keys."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        dataset = self.dataset
        if not self.auto_collation:
            with own_program():
                return self.collate_fn(dataset[possibly_batched_index])
        rows = rows_of(dataset, possibly_batched_index, self.collate_fn)
        if rows is not None:
            return rows
        with own_program():
            if hasattr(dataset, "__getitems__") and dataset.__getitems__:
                data = dataset.__getitems__(possibly_batched_index)
            else:
                data = []
                for key in possibly_batched_index:
                    data.append(dataset[key])
                    compute()
            return self.collate_fn(data)
