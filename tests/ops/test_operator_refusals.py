"""Operators in place: what may not be written to is told before what is wrong with the operand."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same

LINES = (
    "x &= 0.25", "x |= x", "x ^= 1", "x >>= 2", "x[..., :1] >>= x", "x += lib.ones(5)",
    "x *= 1j", "x //= lib.ones(4)", "x **= lib.ones(4)", "y &= 0.25", "y += lib.ones(5)",
    "y[0] |= y", "y *= 1j", "x.view(-1)[:2] <<= 1",
)  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_leaves_are_refused_first(line: str) -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.ones(2, 3, requires_grad=True)
        given = {"lib": lib, "x": x, "y": x * 2}
        with log.catch():
            exec(line, given)
        log(x, given["y"])


def test_powers_of_a_number_lie_row_by_row() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([[0.5, 1.0, 2.0], [1.0, 3.0, 0.25]]).t()
        for number in (2, 0.5, 3.0, 1):
            y = lib.pow(number, x)
            log(y.stride(), y, (number**x).stride(), (number / x).stride(), (x**number).stride())
