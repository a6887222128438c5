"""The older `vmap` against the live torch: values, graphs, errors and their words."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same


def test_it_maps_gradients_of_a_graph_outside() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        _vmap = torch._vmap_internals._vmap
        x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
        unused = torch.ones(3, dtype=torch.float64, requires_grad=True)
        y = x.sin() * x

        def pulled(v: Any) -> Any:
            return torch.autograd.grad(y, (x, unused), v, retain_graph=True, allow_unused=True)

        rows = _vmap(pulled, allow_none_pass_through=True)(torch.eye(3, dtype=torch.float64))
        log(rows)
        log.attempt(_vmap(pulled), torch.eye(3, dtype=torch.float64))
        return rows[0]


def test_dims_and_results() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        _vmap = torch._vmap_internals._vmap
        a = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
        log(_vmap(torch.mul)(a, a))
        log(_vmap(torch.mul, in_dims=1)(a, a))
        log(_vmap(torch.mul, in_dims=(0, None))(a, a[0]))
        log(_vmap(lambda t: (t, t * 2), out_dims=(1, 0))(a))
        log(_vmap(lambda t: t * 2, out_dims=1)(a))
        log(_vmap(torch.sum).__name__)


CALLS = {
    "out_dims of another kind": "_vmap(torch.sum, out_dims='0')(a)",
    "too few out_dims": "_vmap(two, out_dims=(0,))(a)",
    "in_dims of another kind": "_vmap(torch.sum, in_dims=[0])(a)",
    "a dim from the end": "_vmap(torch.sum, in_dims=-1)(a)",
    "a dim too far": "_vmap(torch.sum, in_dims=2)(a)",
    "no inputs": "_vmap(torch.sum)()",
    "a number": "_vmap(torch.mul)(a, 2.0)",
    "sizes that differ": "_vmap(torch.mul)(a, a.t())",
    "a list as the result": "_vmap(listed)(a)",
    "a number among the results": "_vmap(numbered)(a)",
}


@pytest.mark.parametrize("what", CALLS)
def test_refusals(what: str) -> None:
    # What has results of other lengths (`nonzero`, `unique`) is refused as by `func.vmap`;
    # PyTorch's older one maps it by a loop.
    @same
    def program(torch: Any, log: Log) -> Any:
        def two(t: Any) -> Any:
            return t, t

        def listed(t: Any) -> Any:
            return [t]

        def numbered(t: Any) -> Any:
            return t, 1.0

        space = {
            "torch": torch, "_vmap": torch._vmap_internals._vmap, "a": torch.ones(2, 3),
            "two": two, "listed": listed, "numbered": numbered,
        }  # fmt: skip
        log.attempt(eval, CALLS[what], space)


def test_the_name_without_underscore_warns() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        with pytest.warns(FutureWarning) as caught:
            mapped = torch._vmap_internals.vmap(torch.sum)
        log([str(w.message) for w in caught])
        return mapped(torch.ones(2, 3)).tolist()
