"""`vmap` of functions that PyTorch loops over, or composes of other ops there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same


def _values(x: Any) -> Any:
    return str(x.dtype), np.round(np.array(x.tolist()), 5).tolist()


COUNTED = (
    "torch.histc(p, 3)", "torch.histc(p, 3, -1, 1)", "torch.histogram(p, 3)",
    "torch.histogram(p, torch.tensor([-1.0, 0, 1]))", "torch.histogramdd(p.view(2, 2), [2, 2])",
    "torch.bincount(p.abs().long(), minlength=5)", "torch.bincount(p.abs().long())",
    "torch.nonzero_static(p, size=2)", "torch.vmap(lambda q: torch.histc(q[None], 2))(p)",
    "torch.vmap(lambda q: torch.histc(q * p, 2, -2, 2))(w)",
)  # fmt: skip
SPANS = (
    "p, 4, 3", "p, 4.0, 3", "0, p, 3", "p, p + 2, 4", "p, p + 2, 1", "p, p + 2, 0",
    "p, w[0], 4, dtype=torch.float64", "p, p + 2, 4, dtype=torch.int64",
)  # fmt: skip


@pytest.mark.parametrize("call", COUNTED)
def test_what_is_counted(call: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        warnings.filterwarnings("ignore", "There is a performance drop")
        x = torch.tensor([[1.5, -0.5, 2.0, 0.25], [3.0, -1.0, 0.75, 1.0], [0.5, 0.5, 1.0, 4.0]])
        space = {"torch": torch, "w": torch.tensor([1.0, -2.0])}
        for dim in (0, 1):
            fn = eval(f"lambda p: {call}", space)
            with log.catch():
                found = torch.vmap(fn, in_dims=dim)(x if dim == 0 else x.t())
                log([_values(t) for t in (found if isinstance(found, tuple) else [found])])


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("span", SPANS)
def test_spans_between_examples(name: str, span: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for kind in (torch.float32, torch.float64, torch.int64, torch.float16):
            p = torch.tensor([0, 1, 2], dtype=kind)
            w = torch.tensor([3.0, 1.0])
            fn = eval(f"lambda p: torch.{name}({span})", {"torch": torch, "w": w})
            found = torch.vmap(fn)(p)
            log(_values(found))


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("index", ["i", "i[None]", "torch.tensor(1)", "torch.tensor([1, 0])"])
def test_index_select_of_examples(index: str, dim: int) -> None:
    """PyTorch gathers along an index of the input's dims, also along one that has none."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(12.0).view(3, 2, 2).requires_grad_()
        space = {"torch": torch, "dim": dim, "x": x}
        for call in ("p.index_select(dim, {})", "x.index_select(dim, {})"):
            fn = eval(f"lambda p, i: {call.format(index)}", space)
            found = torch.vmap(fn)(x, torch.tensor([0, 1, 1]))
            log(_values(found), _values(torch.autograd.grad(found.square().sum(), x)[0]))


HISTOGRAMS = (
    "torch.histogram(x, 2)", "torch.histogram(x.detach(), 2, weight=w)",
    "torch.histogram(x.detach(), b)", "torch.histogramdd(x, [2, 2, 2])[0]",
    "torch.histogramdd(x, [b, b, b])[0]", "torch.histogramdd(x.detach(), 2, weight=w[:, 0])[1]",
    "torch.histc(x, 3)", "torch.bincount(torch.tensor([1, 2]), w[:, 0])",
    "torch.linspace(x[0, 0], 3, 4)", "torch.logspace(0, x[0, 0], 4)",
    "torch.nonzero_static(x, size=2)", "torch.segment_reduce(x, 'sum', lengths=torch.tensor([2]))",
    "torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), x)",
    "torch.nn.functional.embedding_bag("
    "torch.tensor([[0, 1, 1], [1, 0, 0]]), b[:, None], per_sample_weights=x, mode='sum')",
)  # fmt: skip


@pytest.mark.parametrize("call", HISTOGRAMS)
def test_what_has_no_derivative(call: str) -> None:
    """Results require grad where PyTorch's do; backward and forward mode are refused."""

    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([[1.0, 2.0, 5.0], [3.0, 4.0, 9.0]], requires_grad=True)
        space = {"torch": torch, "w": torch.ones(2, 3, requires_grad=True)}
        space["b"] = torch.tensor([0.0, 3.0, 6.0])
        fn = eval(f"lambda x: {call}", space)
        found = fn(x)
        for out in found if isinstance(found, tuple) else [found]:
            log(out.requires_grad, _values(out))
        with log.catch():
            (found[0] if isinstance(found, tuple) else found).sum().backward()
        with log.catch():
            torch.func.jvp(fn, (x.detach(),), (x.detach(),))
