"""Values and dtypes that PyTorch's kernels refuse, and sizes of nothing, against torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax

CALLS = [
    "torch.linalg.svd(bad)", "torch.linalg.svdvals(bad.expand(3, 2, 2))", "torch.svd(bad)",
    "torch.linalg.norm(bad, 'nuc')", "torch.linalg.norm(bad, 2)", "torch.linalg.cond(bad)",
    "torch.linalg.matrix_rank(bad)", "torch.linalg.pinv(bad)", "bad.pinverse()",
    "torch.linalg.matrix_rank(bad, hermitian=True)", "torch.linalg.cond(bad, 'nuc')",
    *[f"torch.{call}(half)" for call in ("pdist", "special.log_ndtr", "special.ndtri")],
    *[f"torch.nn.functional.multi_margin_loss({x}, label)" for x in ("half", "half.int()")],
    "torch.nn.functional.multilabel_margin_loss(half, label.view(1, 2).expand(2, 2))",
    "torch.pdist(half[:1])", "torch.ones(2).expand(-2, 2)", "torch.ones(2).expand(-1, 2)",
    "torch.ones(2).expand(2, -2)", "torch.linalg.tensorinv(torch.zeros(0, 0), 1)",
    "torch.linalg.tensorinv(torch.zeros(2, 0, 0, 2))",
    "torch.dist(torch.ones(2, 5, 5), torch.ones(2))",
    *[f"torch.lu_unpack(torch.eye(3), torch.tensor([{k}, 2, 3], dtype=torch.int32)).P"
      for k in (0, 1, 4)],
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", CALLS)
def test_refusals(call: str, dtype: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        space = {"torch": torch, "bad": torch.tensor([[1.0, math.nan], [2.0, 3.0]])}
        space |= {"half": torch.ones(2, 2).to(getattr(torch, dtype)), "label": torch.tensor([0, 1])}
        with log.catch():
            made = eval(call, space)
            for t in made if isinstance(made, tuple) else (made,):
                log(t.shape, t.tolist())


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float64", "int64", "bool"])
def test_numbers_that_are_scattered_must_fit(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x, at = torch.ones(2, 3).to(getattr(torch, name)), torch.tensor([[0]])
        for number in (1j, 300, 1.5, -129, 1e9):
            with log.catch():
                log(x.scatter(0, at, number).tolist())
        with log.catch():
            log(x.clone().scatter_(0, at, 1j).tolist())
        for wrong in (1, None, "x"):
            log.attempt(x.nonzero, as_tuple=wrong)
            log.attempt(torch.nonzero, x, as_tuple=wrong)


def test_ndtr_is_made_of_erf() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0, -0.5], requires_grad=True)
        y = torch.special.ndtr(x)
        log(y, y.grad_fn, y.grad_fn._saved_other)
        y.sum().backward()
        log(x.grad.tolist())
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64):
            y = torch.special.ndtr(torch.tensor([1, 2]).to(dtype))
            log(y.dtype, y.double())  # float64 may differ in the last bit, by who computes it


def test_trace_of_bools_is_refused_before_its_shape() -> None:
    for shape in (3,), (3, 3):
        with pytest.raises(NotImplementedError) as theirs:
            torch.ones(shape, dtype=torch.bool).trace()
        with pytest.raises(NotImplementedError) as ours:
            leafax.ones(shape, dtype=leafax.bool).trace()
        assert str(ours.value) == str(theirs.value)
