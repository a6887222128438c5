"""Checks of hyperparameters, with PyTorch's words."""

from __future__ import annotations

from typing import Any


def not_negative(what: str, value: Any, *, name: str | None = None) -> None:
    if value < 0.0:
        raise ValueError(f"Invalid {name or what}: {value}")


def betas(values: tuple[float, float]) -> None:
    for i, beta in enumerate(values):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
