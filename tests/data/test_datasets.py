"""Datasets against PyTorch's: samples, lengths, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import leafax

LIBRARIES = (leafax, torch)


class Stream:
    """An iterable dataset of either library."""

    def __new__(cls, lib: Any, *numbers: int) -> Any:
        class Numbers(lib.utils.data.IterableDataset):
            def __iter__(self) -> Any:
                return iter(numbers)

            def __len__(self) -> int:
                return len(numbers)

        return Numbers()


class Batched(list):
    """A map dataset that fetches batches; one sample too few where it is told to."""

    short = False

    def __getitems__(self, keys: list[int]) -> list[Any]:
        return [("batched", self[key]) for key in keys][self.short :]


class Short(Batched):
    short = True


def said(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a call, or its error and the text of that."""
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


CALLS: list[Any] = [
    lambda lib, data: list(data.ConcatDataset([range(3), range(5, 7)])),
    lambda lib, data: data.ConcatDataset([range(3), range(5, 7)])[-2],
    lambda lib, data: data.ConcatDataset([range(3)])[-4],
    lambda lib, data: data.ConcatDataset([]),
    lambda lib, data: data.ConcatDataset([Stream(lib, 1)]),
    lambda lib, data: data.ConcatDataset([range(3), range(5, 7)]).cumulative_sizes,
    lambda lib, data: list(Stream(lib, 1, 2) + Stream(lib, 3)),
    lambda lib, data: len(Stream(lib, 1, 2) + Stream(lib, 3)),
    lambda lib, data: list(data.ChainDataset([range(2)])),
    lambda lib, data: len(data.ChainDataset([range(2)])),
    lambda lib, data: data.StackDataset(range(3), "abc")[1],
    lambda lib, data: data.StackDataset(a=range(3), b="abc")[1],
    lambda lib, data: data.StackDataset(range(3), Batched("abc")).__getitems__([2, 0]),
    lambda lib, data: data.StackDataset(a=range(3), b=Batched("abc")).__getitems__([2, 0]),
    lambda lib, data: data.StackDataset(range(3), Short("abc")).__getitems__([2, 0]),
    lambda lib, data: data.StackDataset(a=Short("abc")).__getitems__([2, 0]),
    lambda lib, data: data.StackDataset(range(3), b="abc"),
    lambda lib, data: data.StackDataset(range(3), "ab"),
    lambda lib, data: data.StackDataset(a=range(3), b="ab"),
    lambda lib, data: data.StackDataset(),
    lambda lib, data: list(data.Subset(range(10), [3, 1])),
    lambda lib, data: data.Subset("abcdef", [3, 1]).__getitems__([1, 0]),
    lambda lib, data: data.Subset(Batched("abcdef"), [3, 1]).__getitems__([1, 0]),
    lambda lib, data: data.Subset(lib.arange(5), [3, 1])[[1, 0]].tolist(),
    lambda lib, data: type("Mine", (data.Subset,), {"__getitem__": lambda s, i: i})([1], [0]),
    lambda lib, data: data.Dataset()[0],
    lambda lib, data: data.TensorDataset(lib.ones(2), lib.ones(3)),
    lambda lib, data: [t.tolist() for t in data.TensorDataset(lib.arange(4), lib.eye(4))[1:3]],
    lambda lib, data: len(data.TensorDataset(lib.ones(4, 2))),
    lambda lib, data: [len(s) for s in data.random_split(range(10), [3, 7])],
    lambda lib, data: [len(s) for s in data.random_split(range(29), [0.5, 0.1, 0.4])],
    lambda lib, data: sorted(i for s in data.random_split(range(9), [4, 5]) for i in s),
    lambda lib, data: data.random_split(range(10), [3, 6]),
    lambda lib, data: data.random_split(range(10), [1.5, -0.5]),
    lambda lib, data: len(data.random_split(range(3), [1, 2])[1].dataset),
]


@pytest.mark.parametrize("call", CALLS)
def test_as_in_torch(call: Any) -> None:
    ours, theirs = (said(call, lib, lib.utils.data) for lib in LIBRARIES)
    assert ours == theirs


def test_concatenation_by_a_plus() -> None:
    for lib in LIBRARIES:
        rows = lib.utils.data.TensorDataset(lib.arange(2))
        both = rows + rows
        assert type(both) is lib.utils.data.ConcatDataset
        assert [row[0].item() for row in (both[k] for k in range(4))] == [0, 1, 0, 1]


def test_empty_splits_and_an_old_spelling_warn() -> None:
    for lib in LIBRARIES:
        with pytest.warns(UserWarning, match="Length of split at index 2 is 0. This might"):
            lib.utils.data.random_split(range(2), [0.5, 0.5, 0.0])
        with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed"):
            assert lib.utils.data.ConcatDataset([range(3)]).cummulative_sizes == [3]


def test_a_split_follows_its_generator() -> None:
    def split(seed: int) -> list[int]:
        generator = leafax.Generator().manual_seed(seed)
        return list(leafax.utils.data.random_split(range(50), [20, 30], generator)[0])

    assert split(1) == split(1) != split(2)
