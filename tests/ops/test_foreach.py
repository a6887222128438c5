"""`_foreach_*` against torch: values, gradients, versions, errors."""

from __future__ import annotations

from typing import Any

import torch
from helpers.sameness import Log, same

import leafax
from leafax._api import foreach


def test_there_are_all() -> None:
    missing = {n for n in dir(torch) if n.startswith("_foreach_")} - {"_foreach_powsum"}
    assert missing - set(dir(leafax)) == set() and set(foreach.FUNCTIONS) == missing


def test_one_op_on_each() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a, b = torch.tensor([0.5], requires_grad=True), torch.tensor([1.5, 2.0], requires_grad=True)
        pair, numbers = [a, b], [2.0, 3.0]
        found = [
            torch._foreach_exp(pair), torch._foreach_add(pair, pair, alpha=2),
            torch._foreach_mul(pair, numbers), torch._foreach_sub(pair, 1),
            torch._foreach_div(pair, torch.tensor(2.0)), torch._foreach_pow(pair, numbers),
            torch._foreach_pow(2.0, pair), torch._foreach_addcmul(pair, pair, pair, 0.5),
            torch._foreach_addcdiv(pair, pair, pair, numbers), torch._foreach_lerp(pair, pair, 0.5),
            torch._foreach_maximum(pair, 1.0), torch._foreach_minimum(pair, 1.0),
            torch._foreach_clamp_min(pair, numbers), torch._foreach_clamp_max(pair, pair),
            torch._foreach_norm(pair), torch._foreach_norm(pair, 1), torch._foreach_max(pair),
        ]  # fmt: skip
        for results in found:
            log([r.detach() for r in results], type(results).__name__)
        sum(r.sum() for results in found for r in results).backward()
        log.gradients(a.grad, b.grad)


def test_in_place() -> None:
    # PyTorch has one node for all tensors, here each has its own. `_foreach_copy_`, and extrema by
    # numbers in place, have derivatives here alone.
    @same
    def program(torch: Any, log: Log) -> Any:
        a, b = torch.tensor(1.0, requires_grad=True), torch.tensor([2.0, 3.0], requires_grad=True)
        x = torch._foreach_clone([a, b])
        same_ = torch._foreach_mul_(x, [2.0, 3.0])
        log(same_[0] is x[0], x[0]._version)
        torch._foreach_sqrt_(torch._foreach_abs_(x))
        (x[0] + x[1].sum()).backward()
        log.gradients(a.grad, b.grad)
        plain = [torch.ones(2), torch.ones(1)]
        torch._foreach_copy_(plain, [plain[0] * 3, plain[1] * 2])
        log(plain)
        torch._foreach_zero_(plain)
        log(plain)
        for call in (
            lambda: torch._foreach_exp([]), lambda: torch._foreach_add(plain, plain[:1]),
            lambda: torch._foreach_add(plain, [1.0]), lambda: torch._foreach_exp(a),
            lambda: torch._foreach_add_([a], 1),
        ):  # fmt: skip
            with log.catch():
                call()


def test_numbers_in_place_have_no_edge() -> None:
    @same
    def program(torch: Any, log: Any) -> None:
        b = torch.ones(3, requires_grad=True)
        for name in ("add", "sub", "mul", "div"):
            for number in (2, [0.5]):
                (made,) = getattr(torch, f"_foreach_{name}_")([b * 2], number)
                log(made, made.grad_fn)
                log(torch.autograd.grad(made.sum(), b))
