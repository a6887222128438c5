"""Autograd flags of tensors inside functions that are transformed."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same

LEAVES = (
    "torch.ones(2, requires_grad=True)", "torch.zeros_like(e, requires_grad=True)",
    "torch.tensor([1.0, 2.0], requires_grad=True)", "e.new_zeros(2, requires_grad=True)",
    "torch.asarray([1.0, 2.0], requires_grad=True)",
    "torch.hann_window(2, requires_grad=True)", "torch.ones(2).requires_grad_()",
)  # fmt: skip
TRANSFORMS = (
    "vmap(f)(x)", "grad(lambda x: f(x).sum())(x)", "grad(lambda x: vmap(f)(x).sum())(x)",
    "vmap(grad(lambda e: f(e).sum()))(x)",
)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_leaves_made_inside(leaf: str, transform: str) -> None:
    """They require grad there, and are constants to those outside."""

    @same
    def program(torch: Any, log: Log) -> None:
        def f(e: Any) -> Any:
            w = eval(leaf, {"torch": torch, "e": e})
            log(w.requires_grad, w.is_leaf)
            return e * w

        for asked in (False, True):
            x = torch.ones(3, 2).requires_grad_(asked)
            with log.catch():
                out = eval(transform, {**vars(torch.func), "x": x, "f": f})
                log(out.tolist(), out.requires_grad)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("asked", [False, True])
def test_flags(asked: bool, transform: str) -> None:
    """An example has none of its batch's."""

    @same
    def program(torch: Any, log: Log) -> None:
        w = torch.ones(2, requires_grad=True)

        def f(e: Any) -> Any:
            for t in (e,) if "grad" in transform else (e, w, w * 2, e * 3):
                log(t.requires_grad, t.is_leaf, t.grad_fn is None, t.output_nr)
            if "grad" not in transform:
                e.requires_grad = False
                log(e.requires_grad)
            with log.catch():
                e.register_hook(print)
            return e * 2

        x = torch.ones(3, 2).requires_grad_(asked)
        out = eval(transform, {**vars(torch.func), "x": x, "f": f})
        log(out.tolist(), out.requires_grad)
