"""`DataLoader` in one process: arguments, orders, lengths and what it costs a program."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import leafax

LIBRARIES = (leafax, torch)


def numbers_of(lib: Any, promised: int = 5) -> Any:
    class Numbers(lib.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(5))

        def __len__(self) -> int:
            return promised

        def __repr__(self) -> str:
            return "Numbers()"

    return Numbers()


def said(fn: Any, lib: Any) -> Any:
    try:
        return fn(lib, lib.utils.data.DataLoader)
    except Exception as error:
        return type(error), re.sub(r"0x[0-9a-f]+", "", str(error))


def lists(loader: Any) -> Any:
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader]


def set_attribute(loader: Any, name: str) -> None:
    setattr(loader, name, 1)


CALLS: list[Any] = [
    lambda lib, L: lists(L(range(5))),
    lambda lib, L: lists(L(range(5), 2, drop_last=True)),
    lambda lib, L: lists(L(range(5), batch_size=None)),
    lambda lib, L: lists(L(range(5), sampler=[3, 1])),
    lambda lib, L: lists(L(range(5), batch_sampler=[[3, 1], [0]])),
    lambda lib, L: lists(L("abc", batch_sampler=[["a"]], collate_fn=lambda b: b)),
    lambda lib, L: lists(L({"k": 7}, sampler=["k"])),
    lambda lib, L: lists(L(numbers_of(lib), 2)),
    lambda lib, L: lists(L(numbers_of(lib), 2, drop_last=True)),
    lambda lib, L: lists(L(numbers_of(lib), None)),
    lambda lib, L: [len(L(numbers_of(lib), size)) for size in (None, 2, 5)],
    lambda lib, L: [len(L(range(5), size)) for size in (None, 2, 5)],
    lambda lib, L: len(L(numbers_of(lib), 2, drop_last=True)),
    lambda lib, L: len(iter(L(range(5), 2))),
    lambda lib, L: L(range(5), num_workers=-1),
    lambda lib, L: L(range(5), timeout=-1),
    lambda lib, L: L(range(5), prefetch_factor=2),
    lambda lib, L: L(range(5), num_workers=1, prefetch_factor=-2),
    lambda lib, L: L(range(5), persistent_workers=True),
    lambda lib, L: L(range(5), shuffle=True, sampler=[1]),
    lambda lib, L: L(range(5), batch_sampler=[[1]], batch_size=2),
    lambda lib, L: L(range(5), batch_sampler=[[1]], drop_last=True),
    lambda lib, L: L(range(5), batch_size=None, drop_last=True),
    lambda lib, L: L(range(5), batch_size=0),
    lambda lib, L: L(numbers_of(lib), shuffle=True),
    lambda lib, L: L(numbers_of(lib), sampler=[1]),
    lambda lib, L: L(numbers_of(lib), batch_sampler=[[1]]),
    lambda lib, L: L(range(5), multiprocessing_context="spawn"),
    lambda lib, L: L(range(5), num_workers=1, multiprocessing_context="bad"),
    lambda lib, L: L(range(5), num_workers=1, multiprocessing_context=3),
    lambda lib, L: iter(L(range(5), timeout=1)),
    lambda lib, L: iter(L(range(5))).__getstate__(),
    lambda lib, L: L(range(5), num_workers=1).prefetch_factor,
    lambda lib, L: L([], shuffle=True),
    *[
        lambda lib, L, name=name: set_attribute(L(range(5)), name)
        for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                     "persistent_workers", "num_workers", "collate_fn")
    ],
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_as_in_torch(call: Any) -> None:
    ours, theirs = (said(call, lib) for lib in LIBRARIES)
    assert ours == theirs


def test_a_shuffle_takes_each_sample_once_and_follows_the_seed() -> None:
    def orders() -> Any:
        leafax.manual_seed(3)
        loader = leafax.utils.data.DataLoader(range(30), 4, shuffle=True)
        return lists(loader), lists(loader)

    first, second = orders()
    assert (first, second) == orders()
    assert first != second
    assert sorted(sum(first, [])) == list(range(30))


def warned(lib: Any, loader: Any) -> str:
    with pytest.warns(UserWarning) as found:
        list(loader)
    return str(found[0].message)


def test_warnings() -> None:
    def loader(lib: Any, data: Any, **kwargs: Any) -> Any:
        return lib.utils.data.DataLoader(data, **kwargs)

    lengths = []
    for lib in LIBRARIES:
        short = loader(lib, numbers_of(lib, 4))
        assert len(short) == 4
        lengths.append(warned(lib, short))
    assert lengths[0] == lengths[1]
    pins = [warned(lib, loader(lib, range(3), pin_memory=True)) for lib in LIBRARIES]
    assert pins[0] == pins[1]
    crowds = []
    for lib in LIBRARIES:
        with pytest.warns(UserWarning, match="excessive worker creation") as found:
            loader(lib, range(3), num_workers=1000)
        crowds.append(str(found[0].message))
    assert crowds[0] == crowds[1]


def rows(n: int = 20) -> Any:
    x = leafax.arange(3 * n).reshape(n, 3) * 1.0
    return leafax.utils.data.TensorDataset(x, leafax.arange(n) + 100)


@pytest.mark.parametrize("of", ["rows", "subset", "samples", "negative"])
def test_batches_of_rows(of: str) -> None:
    """Gathered at once or row by row, they are the same."""
    data, keys = leafax.utils.data, list(range(20))
    dataset: Any = rows()
    if of == "subset":
        keys = [5, 3, 17, 3]
        dataset = data.Subset(dataset, keys)
    elif of == "negative":
        keys = [-1, -20, 4]
    elif of == "samples":
        dataset = [dataset[k] for k in keys]
    sampler = range(len(keys)) if of == "subset" else keys
    found = list(data.DataLoader(dataset, 6, sampler=sampler))
    at = np.array(keys) % 20
    assert np.concatenate([b[1].numpy() for b in found]).tolist() == (at + 100).tolist()
    assert np.concatenate([b[0].numpy() for b in found]).tolist() == [
        [3.0 * k, 3 * k + 1, 3 * k + 2] for k in at
    ]


def test_keys_out_of_range_raise() -> None:
    loader = leafax.utils.data.DataLoader(rows(), batch_sampler=[[1, 20]])
    with pytest.raises(IndexError, match="index 20 is out of bounds for dimension 0 with size 20"):
        list(loader)


def test_a_batch_is_one_input_of_the_step_and_compiles_once() -> None:
    leafax.manual_seed(0)
    w = leafax.zeros(3, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    loader = leafax.utils.data.DataLoader(rows(), 5, shuffle=True)

    def epoch() -> None:
        for x, y in loader:
            assert type(x._array) is np.ndarray  # in the host's memory still
            optimizer.zero_grad()
            ((x @ w - y) ** 2).mean().backward()
            optimizer.step()

    epoch()
    leafax.explain(clear=True)
    epoch()
    steps = list(leafax.explain())
    assert [run.reason for run in steps] == ["optimizer.step()"] * 4
    assert {run.how for run in steps} == {"cached"}


class Doubled(leafax.utils.data.Dataset):
    """Samples that leafax computes, not always in the same way."""

    def __init__(self) -> None:
        self.x = leafax.arange(12).reshape(6, 2)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, k: int) -> Any:
        x = self.x[k] * 2
        return (x.flip(0) if k % 2 else x) + leafax.tensor(1)


def test_what_a_dataset_computes_is_no_part_of_what_is_pending() -> None:
    dataset = Doubled()
    leafax.synchronize()
    pending = leafax.ones(2) + 1
    (batch,) = leafax.utils.data.DataLoader(dataset, 6)
    assert pending._array is None
    assert batch.tolist() == [[1, 3], [7, 5], [9, 11], [15, 13], [17, 19], [23, 21]]
    assert (pending + batch[0]).tolist() == [3, 5]


def test_grad_mode_and_gradients_pass_through_a_dataset() -> None:
    w = leafax.tensor(2.0, requires_grad=True)

    class Scaled:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, k: int) -> Any:
            return w * k

    (batch,) = leafax.utils.data.DataLoader(Scaled(), 3)
    batch.sum().backward()
    assert w.grad.item() == 3
    with leafax.no_grad():
        (batch,) = leafax.utils.data.DataLoader(Scaled(), 3)
    assert not batch.requires_grad
