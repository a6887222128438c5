"""`x[...]` and `x[...] = y` as PyTorch reads indices and what is assigned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import assert_equal, run, same

import leafax

INDICES = (
    "d > 0", "d[:, 0] > 0", "0, d[0] > 0", "...", "None", "True", "False", "torch.tensor(1)",
    "torch.tensor([0, 1])", "[0, 1]", "[True, False]", "[[0, 1], [1, 0]]", ":, [0, 1]",
    "torch.tensor(True)", "torch.tensor([0]), 1", "..., torch.tensor([0, 0])", "None, 0",
    "1, None", "[slice(0, 1), 0]", "-1", "2", "1:1", "0, [0, 1]", "(0, True)", "np.int64(1)",
    "np.array([[0, 1], [1, 0]])", "[[0], [1]]", "1.5",
)  # fmt: skip
VALUES = (
    "0.5", "1j", "True", "b.sum()", "a[0]", "torch.ones(2)", "d", "[1, 2, 3]", "np.float32(1)",
    "torch.ones(1, 1, 1, 3, dtype=torch.float64)",
)  # fmt: skip


def _space(torch: Any) -> dict[str, Any]:
    rows = [[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]]
    b = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    z = torch.tensor([[1j, 2.0, 1.0]], dtype=torch.complex128)
    return {"torch": torch, "np": np, "a": b.detach().clone(), "b": b, "z": z, "d": b * 2}


@pytest.mark.parametrize("index", INDICES)
def test_assignment(index: str) -> None:
    def program(torch: Any, see: Any) -> None:
        for value in VALUES:
            space = _space(torch)
            with see.catch():
                exec(f"d[{index}] = {value}", space)
            see(space["d"])
            with see.catch():
                space["d"].sum().backward()
            see.gradients(space["b"].grad)

    assert_equal(run(program, leafax), run(program, torch), index)


@pytest.mark.parametrize("index", INDICES[:-1])
def test_reading(index: str) -> None:
    def program(torch: Any, see: Any) -> None:
        for value in ("d", "d[0]", "d.t()", "d.sum()"):
            space = _space(torch)
            with see.catch():
                x = eval(f"({value})[{index}]", space)
                see(x)
                if x.requires_grad:
                    x.sum().backward()
                    see.gradients(space["b"].grad)

    assert_equal(run(program, leafax), run(program, torch), index)


@pytest.mark.parametrize("value", ["0.5", "a", "a.sum()", "x"])
def test_assignment_to_what_repeats(value: str) -> None:
    def program(torch: Any, see: Any) -> None:
        for index in (":", "...", "0", ":, 0", "None", ":, :, 1", "torch.tensor([0])", "x > 1"):
            space = _space(torch)
            space["x"] = x = space["d"].expand(2, 2, 3)
            with see.catch():
                exec(f"x[{index}] = {value}", space)
            see(x)
            with see.catch():
                x.sum().backward()

    assert_equal(run(program, leafax), run(program, torch), value)


def test_resize_keeps_the_memory() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        a = torch.arange(6.0).view(2, 3)
        for x in (a * 1, a.t(), a.t() * 1, a[1], a[:, 1]):
            see(x.resize_(2), a)
            x.mul_(2)
            see(x, a, x.stride(), x.storage_offset(), x.is_contiguous())
        x = a * 1
        y = x.view(-1)
        x.resize_(2, 2).mul_(3)
        see(x, y, x.as_strided((6,), (1,)))
        see(x.resize_(2, 3), y)
