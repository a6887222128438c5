"""`AveragedModel` and `update_bn` of modules, against PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import leafax

_WAYS: dict[str, Any] = {
    "swa": lambda u: {},
    "ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7)},
    "one by one": lambda u: {"avg_fn": u.get_ema_avg_fn(0.6)},
    "buffers": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.5), "use_buffers": True},
}


def _averaged(lib: Any, start: Any, kwargs: Any) -> Any:
    net = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).double()
    net.load_state_dict({k: lib.tensor(v) for k, v in start.items()})
    utils, optimizer = lib.optim.swa_utils, lib.optim.SGD(net.parameters(), lr=0.1)
    average = utils.AveragedModel(net, **kwargs(utils))
    x = lib.tensor(np.linspace(-1, 2, 12).reshape(4, 3))
    for _ in range(3):
        optimizer.zero_grad()
        (net(x) ** 3).sum().backward()
        optimizer.step()
        average.update_parameters(net)
    first = {k: v.detach().numpy().copy() for k, v in average.state_dict().items()}
    average.eval()
    utils.update_bn([x, (x * 2, None)], average)
    assert not average.training and average.module[1].momentum == 0.1
    second = {k: v.detach().numpy() for k, v in average.state_dict().items()}
    return [first, second, {"y": average(x).detach().numpy()}]


@pytest.mark.parametrize("way", _WAYS)
def test_averages_and_statistics_equal_pytorchs(way: str) -> None:
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).double()
    start = {k: v.numpy().copy() for k, v in made.state_dict().items()}
    ours, theirs = (_averaged(lib, start, _WAYS[way]) for lib in (leafax, torch))
    for mine, expected in zip(ours, theirs, strict=True):
        assert list(mine) == list(expected)
        for name in expected:
            np.testing.assert_allclose(mine[name], expected[name], rtol=1e-9, atol=1e-12)


def test_models_without_batch_norm_are_left_alone() -> None:
    net = leafax.nn.Linear(2, 2).eval()
    leafax.optim.swa_utils.update_bn([leafax.ones(1, 2)], net)
    assert not net.training
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be"):
        leafax.optim.swa_utils.AveragedModel(net, avg_fn=max, multi_avg_fn=max)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_averages_are_copied_and_pickled(copied: Any) -> None:
    averaged = leafax.optim.swa_utils.AveragedModel(leafax.nn.Linear(2, 1))
    averaged.update_parameters(leafax.nn.Linear(2, 1))
    other = copied(averaged)
    assert type(other) is type(averaged)
    for name, value in averaged.state_dict().items():
        assert other.state_dict()[name].tolist() == value.tolist()
