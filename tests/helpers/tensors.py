"""Make small tensors of float64 with either library."""

from __future__ import annotations

from typing import Any

import torch


def numbers(lib: Any, *shape: int, requires_grad: bool = False) -> Any:
    x = lib.arange(float(torch.Size(shape).numel()), dtype=lib.float64).reshape(shape) * 0.3 - 0.5
    return x.clone().requires_grad_(requires_grad)


def filled(lib: Any, shape: tuple[int, ...], start: float = -0.7) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (lib.arange(float(count), dtype=lib.float64) * 0.31 + start).sin().reshape(shape)
