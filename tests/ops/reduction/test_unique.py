"""`unique` of what requires grad: a history that backward refuses, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "unique": lambda t, x: t.unique(x),
    "all": lambda t, x: t.unique(x, return_inverse=True, return_counts=True),
    "dim": lambda t, x: t.unique(x, dim=0, return_counts=True),
    "consecutive": lambda t, x: t.unique_consecutive(x, return_inverse=True),
    "consecutive, dim": lambda t, x: x.unique_consecutive(dim=0),
    "_unique": lambda t, x: t._unique(x),
    "_unique with inverse": lambda t, x: t._unique(x, return_inverse=True),
    "_unique2": lambda t, x: t._unique2(x, return_counts=True),
    "unique_dim": lambda t, x: t._VF.unique_dim(x, 0, return_inverse=True, return_counts=True),
}


@pytest.mark.parametrize("call", CALLS)
def test_unique(call: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([3.0, 1.0, 1.0, 2.0], requires_grad=True)
        found = CALLS[call](torch, x)
        values = found[0] if isinstance(found, tuple) else found
        log(found)
        log.attempt(values.sum().backward)
        with torch.no_grad():
            log(CALLS[call](torch, x))
        log(CALLS[call](torch, x.detach()))


def test_unique_halves_that_are_not_numbers_come_last() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        x = torch.tensor([float("nan"), 2.0, float("-inf"), 2.0]).bfloat16()
        values, *others = x.unique(return_inverse=True, return_counts=True)
        log(values.float(), *others)


@pytest.mark.parametrize("dim", [0, 1])
def test_unique_dim_finds_inverse_and_counts_whether_asked_or_not(dim: int) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[3.0, 1.0, 3.0], [2.0, 1.0, 2.0]], requires_grad=True)
        for asked in ((False, False), (True, False), (False, True)):
            log(torch._VF.unique_dim(x, dim, True, *asked))
