"""Samplers: orders, lengths, statistics, and PyTorch's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import leafax

DATA = leafax.utils.data
LIBRARIES = (leafax, torch)


def said(fn: Any, data: Any) -> Any:
    try:
        return fn(data)
    except Exception as error:
        return type(error), str(error)


CALLS: list[Any] = [
    lambda data: list(data.SequentialSampler("abc")),
    lambda data: len(data.RandomSampler("abc", num_samples=7)),
    lambda data: sorted(data.RandomSampler("abc", num_samples=6)),
    lambda data: len(set(data.RandomSampler(range(9), num_samples=4))),
    lambda data: len(list(data.RandomSampler(range(9), True, num_samples=70))),
    lambda data: data.RandomSampler("abc", replacement=1),
    lambda data: data.RandomSampler("abc", num_samples=0),
    lambda data: data.RandomSampler("abc", num_samples=2.0),
    lambda data: data.RandomSampler(""),
    lambda data: sorted(data.SubsetRandomSampler("cab")),
    lambda data: len(data.SubsetRandomSampler([4, 5])),
    lambda data: list(data.BatchSampler(data.SequentialSampler(range(7)), 3, False)),
    lambda data: list(data.BatchSampler(range(7), 3, True)),
    lambda data: [len(data.BatchSampler(range(7), 3, drop)) for drop in (True, False)],
    lambda data: data.BatchSampler(range(7), 0, True),
    lambda data: data.BatchSampler(range(7), True, True),
    lambda data: data.BatchSampler(range(7), 2, 1),
    lambda data: sorted(data.WeightedRandomSampler([1, 0, 2.0, 1], 3, replacement=False)),
    lambda data: set(data.WeightedRandomSampler([0, 1, 0], 20)),
    lambda data: list(data.WeightedRandomSampler([1, -1.0], 2)),
    lambda data: list(data.WeightedRandomSampler([1.0, 2.0], 3, replacement=False)),
    lambda data: data.WeightedRandomSampler([1, 2], 0),
    lambda data: data.WeightedRandomSampler([1, 2], True),
    lambda data: data.WeightedRandomSampler([1, 2], 2, replacement=0),
    lambda data: data.WeightedRandomSampler([[1, 2]], 2),
    lambda data: next(iter(data.Sampler())),
    lambda data: len(data.Sampler()),
    *[
        lambda data, rank=rank, drop=drop: list(
            data.DistributedSampler(range(10), 3, rank, shuffle=False, drop_last=drop)
        )
        for rank in range(3)
        for drop in (True, False)
    ],
    lambda data: list(data.DistributedSampler(range(2), 5, 4, shuffle=False)),
    lambda data: len(data.DistributedSampler(range(10), 4, 0)),
    lambda data: data.DistributedSampler(range(10), 3, 3),
]


@pytest.mark.parametrize("call", CALLS)
def test_as_in_torch(call: Any) -> None:
    ours, theirs = (said(call, lib.utils.data) for lib in LIBRARIES)
    assert ours == theirs


def test_processes_share_an_order_that_changes_with_the_epoch() -> None:
    samplers = [DATA.DistributedSampler(range(10), 2, rank, seed=3) for rank in range(2)]
    orders = [[list(sampler) for sampler in samplers]]
    for sampler in samplers:
        sampler.set_epoch(1)
    orders.append([list(sampler) for sampler in samplers])
    assert orders[0] != orders[1]
    for order in orders:
        assert sorted(order[0] + order[1]) == list(range(10))


def test_without_a_process_group_replicas_are_asked_for() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DATA.DistributedSampler(range(10))


SAMPLERS: list[Any] = [
    lambda g: DATA.RandomSampler(range(40), generator=g),
    lambda g: DATA.RandomSampler(range(40), True, 40, generator=g),
    lambda g: DATA.SubsetRandomSampler(range(40), generator=g),
    lambda g: DATA.WeightedRandomSampler([1.0] * 40, 40, generator=g),
    lambda g: DATA.WeightedRandomSampler([1.0] * 40, 40, False, generator=g),
]


@pytest.mark.parametrize("make", SAMPLERS)
def test_orders_follow_a_generator(make: Any) -> None:
    def orders(generator: Any) -> list[Any]:
        sampler = make(generator)
        return [list(sampler), list(sampler)]

    first = orders(leafax.Generator().manual_seed(5))
    assert first == orders(leafax.Generator().manual_seed(5))
    assert first[0] != first[1]
    leafax.manual_seed(5)
    state = leafax.get_rng_state()
    ours = orders(None)
    assert ours != orders(None)
    leafax.set_rng_state(state)
    assert ours == orders(None)


def test_frequencies_are_the_weights() -> None:
    leafax.manual_seed(0)
    n = 20_000
    drawn = list(DATA.WeightedRandomSampler([1, 0, 3.0, 4], n))
    assert np.allclose(np.bincount(drawn) / n, [1 / 8, 0, 3 / 8, 1 / 2], atol=0.015)
    firsts = [
        list(DATA.WeightedRandomSampler([1, 3.0, 4], 2, replacement=False))[0] for _ in range(2000)
    ]
    assert np.allclose(np.bincount(firsts) / 2000, [1 / 8, 3 / 8, 1 / 2], atol=0.05)
    uniform = np.bincount(list(DATA.RandomSampler(range(4), True, n))) / n
    assert np.allclose(uniform, 0.25, atol=0.015)


def test_an_order_is_drawn_beside_all_programs() -> None:
    x = leafax.ones(3) * 2  # pending
    leafax.explain(clear=True)
    assert len(list(DATA.RandomSampler(range(1000)))) == 1000
    assert len(DATA.random_split(range(1000), [0.5, 0.5])) == 2
    assert not list(leafax.explain())
    assert x.tolist() == [2, 2, 2]


def test_draws_go_on_after_an_order() -> None:
    def draws() -> list[Any]:
        leafax.manual_seed(1)
        first = leafax.rand(2)
        order = list(DATA.RandomSampler(range(5)))
        return [first.tolist(), order, leafax.rand(2).tolist()]

    found = draws()
    assert found == draws()
    assert found[0] != found[2]
