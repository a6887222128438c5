"""Errors that only the data can tell, and errors at the line that made them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.sameness import assert_equal, run

import leafax

F = leafax.nn.functional

BY_DATA: dict[str, Callable[[Any], Any]] = {
    "label": lambda t: t.nn.functional.cross_entropy(t.zeros(2, 3), t.tensor([0, 3])),
    "negative label": lambda t: t.nn.functional.nll_loss(t.zeros(2, 3), t.tensor([0, -1])),
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([4]), t.zeros(3, 2)),
    "gather": lambda t: t.zeros(2, 3).gather(1, t.tensor([[0, 3]])),
    "index": lambda t: t.zeros(3)[t.tensor([1, 7])],
    "index_select": lambda t: t.zeros(3).index_select(0, t.tensor([5])),
    "index_add": lambda t: t.zeros(3).index_add(0, t.tensor([4]), t.ones(1)),
    "index_copy": lambda t: t.zeros(3).index_copy(0, t.tensor([4]), t.ones(1)),
    "scatter": lambda t: t.zeros(2, 3).scatter(1, t.tensor([[3]]), 1.0),
    "take": lambda t: t.zeros(3).take(t.tensor([5])),
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([0, 3]), 3),
    "dense label": lambda t: t.nn.functional.cross_entropy(t.zeros(1, 3, 2), t.tensor([[7, 2]])),
    "listed label": lambda t: t.nn.functional.multilabel_margin_loss(
        t.zeros(1, 3), t.tensor([[0, 5, -1]])
    ),
    "singular inv": lambda t: t.linalg.inv(t.zeros(2, 2)),
    "singular solve": lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2)),
    "singular batch": lambda t: t.linalg.inv(t.stack([t.eye(2), t.zeros(2, 2)])),
    "singular power": lambda t: t.linalg.matrix_power(t.zeros(3, 3), -1),
    "singular tensorinv": lambda t: t.linalg.tensorinv(t.zeros(2, 2), 1),
    "zero pivot": lambda t: t.linalg.lu_factor(t.zeros(2, 2))[0],
    "not positive": lambda t: t.linalg.cholesky(-t.eye(2)),
    "ctc lengths": lambda t: t.nn.functional.ctc_loss(
        t.zeros(4, 1, 3).log_softmax(-1), t.tensor([[1, 2]]), t.tensor([9]), t.tensor([2])
    ),
    "weights": lambda t: t.multinomial(t.tensor([-1.0, 2]), 1),
    "rates": lambda t: t.poisson(t.tensor([-1.0])),
    "integer at a mask": lambda t: t.zeros(1, dtype=t.uint8).index_put((M(t),), t.tensor(300)),
    "large at a mask": lambda t: t.zeros(1, dtype=t.float16).index_put((M(t),), t.tensor(1e30)),
    "nan at a mask": lambda t: t.zeros(1, dtype=t.int64).index_put((M(t),), t.tensor(t.nan)),
    "complex at a mask": lambda t: t.zeros(1).index_put((M(t),), t.tensor(2j)),
}


def M(t: Any) -> Any:
    return t.tensor([True])


@pytest.mark.quick(4)
@pytest.mark.parametrize("case", BY_DATA)
def test_raised_at_the_observation_in_torchs_words(case: str) -> None:
    with pytest.raises((IndexError, RuntimeError)) as theirs:
        BY_DATA[case](torch)
    text = str(theirs.value).split("\n")[0]
    kind = IndexError if isinstance(theirs.value, IndexError) else RuntimeError
    with pytest.raises(kind, match=re.escape(text)) as ours:
        BY_DATA[case](leafax).sum().item()
    line = inspect.getsourcelines(BY_DATA[case])[1]
    assert f"{__file__}:{line}" in ours.value.__notes__[0]


def test_raised_at_the_next_step_of_a_loop() -> None:
    w = leafax.zeros(3, 3).requires_grad_()
    w = leafax.tensor([[0.0] * 3] * 3, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    x = leafax.eye(3)
    with pytest.raises(IndexError, match="Target 9 is out of bounds."):
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(x @ w, leafax.tensor([0, 9, 1])).backward()
            optimizer.step()
            leafax.synchronize()
    w.sum().item()  # said once, not for ever


def test_a_result_that_nobody_used_is_checked_too() -> None:
    x = leafax.zeros(3)
    x[leafax.tensor([8])]
    with pytest.raises(IndexError, match="index 8 is out of bounds for dimension 0 with size 3"):
        (x + 1).tolist()


AT_THE_LINE: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda t: t.zeros(2, 3) @ t.zeros(4, 5),
    "add": lambda t: t.zeros(3) + t.zeros(4),
    "view": lambda t: t.zeros(6).view(4),
    "cat": lambda t: t.cat([t.zeros(2, 3), t.zeros(3, 2)]),
    "mean of ints": lambda t: t.arange(3).mean(),
    "select": lambda t: t.zeros(3)[3],
    "dim": lambda t: t.zeros(3).sum(1),
    "linear": lambda t: t.nn.functional.linear(t.zeros(2, 3), t.zeros(4, 5)),
    "in-place shape": lambda t: t.zeros(3).add_(t.zeros(2, 3)),
    "in-place dtype": lambda t: t.zeros(3, dtype=t.int64).add_(0.5),
    "requires_grad of ints": lambda t: t.arange(3).requires_grad_(),
    "requires_grad set on ints": lambda t: setattr(t.arange(3), "requires_grad", True),
    "requires_grad given for ints": lambda t: t.tensor([1], requires_grad=True),
    "too many indices": lambda t: t.zeros(2)[0, 0],
    "bool of many": lambda t: bool(t.zeros(2)),
    "item of many": lambda t: t.zeros(2).item(),
    "len of 0-dim": lambda t: len(t.tensor(1.0)),
    "iteration of 0-dim": lambda t: list(t.tensor(1.0)),
    "numpy with grad": lambda t: t.zeros(2, requires_grad=True).numpy(),
    "bool minus": lambda t: t.tensor([True]) - t.tensor([True]),
}


@pytest.mark.parametrize("case", AT_THE_LINE)
def test_raised_where_it_is_written(case: str) -> None:
    with pytest.raises(Exception) as theirs:
        AT_THE_LINE[case](torch)
    with pytest.raises(type(theirs.value)) as ours:
        AT_THE_LINE[case](leafax)
    assert str(ours.value) == str(theirs.value)


def test_an_error_leaves_the_recorder_usable() -> None:
    x = leafax.ones(3, 2)
    y = x * 2
    with pytest.raises(RuntimeError):
        y @ y
    assert (y + 1).sum().item() == 18.0


@pytest.mark.parametrize("src", [(3,), (1,), (5,), (), (1, 4)])
@pytest.mark.parametrize("index", [(3, 1), (1, 1), (4, 1), (1, 4)])
def test_sources_of_other_dims_are_refused_by_scatter(index: Any, src: Any) -> None:
    def program(lib: Any, log: Any) -> None:
        x, places = lib.zeros(3, 3), lib.zeros(index, dtype=lib.int64)
        for dim in (0, 1):
            log.attempt(x.scatter_add, dim, places, lib.ones(src))

    assert_equal(run(program, leafax), run(program, torch), "words")
