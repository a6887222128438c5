"""`func.rearrange` beside live PyTorch: shapes, values and errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.func
from helpers.sameness import Log, same

import leafax

PATTERNS = (
    "a b c -> c b a", "a b c -> (a b) c", "a b c -> a (c b)", "... c -> c ...", "a b c->c b a",
    "a b c -> a 1 b c", "a b c -> (a b c)", "... -> ...", "a b c -> a () b c",
    "a b ... -> (b ...) a", "a ... b c d -> a ... b c d", "a b c -> (a 1 b) c", "a b c -> a b",
    "a b -> a b", "a b c d -> a b c d", "a b c ->", "a b c", "a a b -> a b", "a -> b -> c",
    "a_ b c -> a_ b c", "a b 2 -> a b 2", ".. a -> a ..", "... ... a -> a ...", "(a b -> a b",
    "a) b c -> a b c", "((a b)) c d -> a b c d", "a $ c -> a c $", "a b c -> ... a b c",
    "(... a) b -> a b ...", "a b (c d) -> a b c d", "(a d) b c -> a d b c", "0 b c -> b c",
    "a ... b c d e -> a ... b c d e", "\u2026 b -> b",
)  # fmt: skip
SIZES: tuple[dict[str, Any], ...] = (
    {"d": 2}, {"c": 2}, {"d": 3}, {"c": 2, "d": 3}, {"e": 3}, {"d": 4.0},
)  # fmt: skip


def test_patterns() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(24.0).reshape(2, 3, 4)
        for pattern in PATTERNS:
            log(pattern)
            log.attempt(lambda: torch.func.rearrange(x, pattern).clone())  # noqa: B023
        for sizes in SIZES:
            log.attempt(lambda: torch.func.rearrange(x, "a b (c d) -> a d (b c)", **sizes).clone())  # noqa: B023
        log.attempt(lambda: torch.func.rearrange(x, "a b c -> a b c", c=5))
        log.attempt(lambda: torch.func.rearrange(x[:1, :, :1], "1 a 1 -> a").clone())
        log.attempt(lambda: torch.func.rearrange([x, x], "n a b c -> a n b c").clone())
        log.attempt(lambda: torch.func.rearrange(torch.ones(()), "->").clone())


def test_keywords_as_names_are_discouraged() -> None:
    for lib in (torch, leafax):
        with pytest.warns(RuntimeWarning, match="that are keywords: in$"):
            lib.func.rearrange(lib.ones(2, 5), "in b -> b in")
        with pytest.warns(FutureWarning, match="discouraged to use 'axis' as an axis name"):
            lib.func.rearrange(lib.ones(2, 5), "axis b -> b axis")


def test_gradients_flow_through() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
        y = torch.func.rearrange(x, "a b (c d) -> (a d) (b c)", d=2)
        (y * torch.arange(24.0).reshape(4, 6)).sum().backward()
        log.gradients(x.grad)
