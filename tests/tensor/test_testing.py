"""`testing.assert_close`: passes and fails where torch's does, with its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax


def check(t: Any, *args: Any, **kwargs: Any) -> Any:
    return t.testing.assert_close(*args, **kwargs)


CASES: list[Callable[[Any], Any]] = [
    lambda t: check(t, t.ones(3), t.tensor([1.0, 2.0, 1.0])),
    lambda t: check(t, t.ones(2) + 1e-7, t.ones(2)),
    lambda t: check(t, 1.0, 1.1),
    lambda t: check(t, 1, 2),
    lambda t: check(t, True, False),
    lambda t: check(t, t.ones(3), t.ones(2)),
    lambda t: check(t, t.ones(3), t.ones(3).double()),
    lambda t: check(t, t.ones(2).double(), t.ones(2) * 2, check_dtype=False),
    lambda t: check(t, t.ones(2, 3).t(), t.ones(3, 2), check_stride=True),
    lambda t: check(t, [1.0, 2.0], [1.0, 2.5]),
    lambda t: check(t, (1, (2.0, 3.0)), (1, (2.0, 4.0))),
    lambda t: check(t, [1.0], [1.0, 2.0]),
    lambda t: check(t, {"a": t.ones(2)}, {"a": t.zeros(2)}),
    lambda t: check(t, {"a": 1}, {"b": 1}),
    lambda t: check(t, [{"x": [t.ones(1)]}], [{"x": [t.zeros(1)]}]),
    lambda t: check(t, t.tensor(1.0), t.tensor(2.0)),
    lambda t: check(t, t.tensor([1, 2]), t.tensor([1, 3])),
    lambda t: check(t, t.ones(2, dtype=t.bool), t.tensor([True, False])),
    lambda t: check(t, t.ones(2).bfloat16(), t.ones(2).bfloat16() * 1.1),
    lambda t: check(t, t.ones(2) * 1j, t.ones(2) * 2j),
    lambda t: check(t, t.tensor(float("nan")), t.tensor(float("nan"))),
    lambda t: check(t, t.tensor([float("nan")]), t.tensor([float("nan")]), equal_nan=True),
    lambda t: check(t, t.tensor([float("inf")]), t.tensor([float("inf")])),
    lambda t: check(t, t.ones(2), t.zeros(2), msg="text"),
    lambda t: check(t, t.ones(2), t.zeros(2), msg=lambda text: f"before {text}"),
    lambda t: check(t, t.ones(2), t.zeros(2), rtol=1e-3),
    lambda t: check(t, t.ones(2, 2), t.tensor([[1.0, 1.0], [1.0, 5.0]]), rtol=0, atol=1),
    lambda t: check(t, t.ones(2), [1.0, 1.0]),
    lambda t: check(t, None, None),
    lambda t: check(t, None, 1),
    lambda t: check(t, "a", "b"),
    lambda t: check(t, 1, 1.0),
    lambda t: check(t, 1, 1.0, check_dtype=False),
    lambda t: check(t, np.float32(1), 1.0),
    lambda t: check(t, np.int64(1), 2),
    lambda t: check(t, np.ones(2), np.zeros(2)),
    lambda t: check(t, np.ones(2), np.ones(2, np.float32)),
    lambda t: check(t, np.ones(2), t.ones(2).double()),
    lambda t: check(t, np.array(["a"]), np.array(["a"])),
]


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    try:
        return call(lib)
    except Exception as e:
        return type(e), str(e).replace("leafax.Tensor", "torch.Tensor")


@pytest.mark.parametrize("case", CASES)
def test_as_in_torch(case: Callable[[Any], Any]) -> None:
    assert outcome(case, leafax) == outcome(case, torch)
