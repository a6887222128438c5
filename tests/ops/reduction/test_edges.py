"""Reductions and scatters at their edges: NaN, infinity, nothing to reduce, arguments refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from helpers.sameness import Log, same

import leafax

NAN, INF = float("nan"), float("inf")


def scattered(t: Any, name: str, reduce: str, include_self: bool, special: float) -> Any:
    """A reduction at whose first places a special number meets others, and its gradients."""
    x = t.tensor([[special, -1.0, 3.0, 0.5], [2.0, 0.3, special, -2.0]], requires_grad=True)
    src = t.tensor([[1.0, 2.0, special], [-1.0, 0.2, 4.0]], requires_grad=True)
    if name == "index_reduce":
        index = t.tensor([0, 1, 1])
    else:
        index = t.tensor([[0, 1, 1], [2, 2, 0]])
    with warnings.catch_warnings():  # PyTorch's formulas call the function, which warns, again
        warnings.simplefilter("ignore")
        made = getattr(x, name)(1, index, src, reduce, include_self=include_self)
        grads = t.autograd.grad(made, (x, src), t.arange(1.0, 9.0).view(2, 4))
    return made, [g.clone() for g in grads]


@pytest.mark.parametrize("special", [NAN, INF, 0.0])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_gradients_at_special_numbers(
    name: str, reduce: str, include_self: bool, special: float
) -> None:
    same(lambda t, log: scattered(t, name, reduce, include_self, special))


COMPLEX_SUMS: list[list[complex]] = [
    [complex(-INF, 4), complex(-INF, 1), 1.2 + 2.1j, 1e10 + 1e20j, complex(INF, 0)],
    [complex(INF, 0), complex(INF, 1), complex(INF, 3), 1 + 1j],
    [complex(-INF, INF), complex(-INF, 1), 1.2 + 2.1j, complex(2.4, INF), 1j],
    [1 + 1j, complex(NAN, 2), 1 + 1j],
    [complex(NAN, 2), 1j, complex(-INF, 2)],
    [1 + 3j, 1 + 3j, 1 + 3j, 2 + 0j],
]


@pytest.mark.parametrize("numbers", COMPLEX_SUMS)
def test_complex_logcumsumexp_past_infinity(numbers: list[complex]) -> None:
    def program(t: Any, log: Any) -> Any:
        return t.view_as_real(t.tensor(numbers).logcumsumexp(0).clone()).clone()

    same(program)


def places(t: Any) -> Any:
    return t.tensor([0, 1]), t.tensor([1.0, -2.0])


CASES: list[Any] = [
    lambda t: t.zeros(3).scatter_reduce(0, *places(t), "max"),
    lambda t: t.zeros(3).scatter_reduce(0, *places(t), "min", include_self=False),
    lambda t: t.zeros(3).scatter_reduce_(0, *places(t), "min"),
    lambda t: (t.zeros(3) + 0j).scatter_reduce(0, t.tensor([0]), t.ones(1) + 0j, "max"),
    lambda t: t.zeros(3).index_reduce(0, *places(t), "max"),
    *(
        lambda t, k=kind, r=reduce, i=own: t.ones(2, 2, dtype=getattr(t, k)).index_reduce(
            0, t.tensor([0]), t.zeros(1, 2, dtype=getattr(t, k)), r, include_self=i
        )
        for kind in ("bool", "complex64")
        for reduce in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
    lambda t: t.nanmean(t.ones(3), dtype=t.int32),
    lambda t: t.nanmean(t.ones(3), dtype=t.bool),
    lambda t: t.nanmean(t.ones(3) + 0j, dtype=t.int64),
    lambda t: t.nanmedian(t.zeros(2, 0), 1),
    lambda t: t.unique(t.empty(5, 0, 0), dim=1),
    lambda t: t.unique(t.empty(5, 0, 0), dim=0),
    lambda t: t.unique_consecutive(t.empty(5, 0, 0), dim=1),
    lambda t: t.unique_consecutive(t.empty(5, 0), dim=0),
    lambda t: t.norm(t.ones(3, 4), dim=True),
    lambda t: t.norm(t.ones(3, 4), 2, [True]),
    lambda t: t.norm(t.ones(3, 4), dim="a"),
    lambda t: t.norm(t.ones(3, 4), 2, dim=[]),
    lambda t: t.amax(t.zeros(2, 0), dim=-1),
    lambda t: t.amin(t.zeros(2, 0), dim=(0, -1)),
    lambda t: t.amin(t.zeros(2, 0), dim=(0, 0)),
    lambda t: t.amin(t.zeros(2, 0), dim=0),
    lambda t: t.aminmax(t.tensor(1 + 0j), dim=0),
    lambda t: t.aminmax(t.ones(2) + 0j, dim=0),
    lambda t: t.histogram(t.ones(3), t.ones(1, 3)),
    lambda t: t.histogram(t.ones(3), t.tensor(1.0)),
]


@pytest.mark.parametrize("case", CASES)
def test_edges(case: Any) -> None:
    def program(t: Any, log: Any) -> Any:
        return log.attempt(case, t)

    same(program)


def test_other_names_of_extrema_have_the_gradient_of_these() -> None:
    """PyTorch has none for them."""
    x = leafax.zeros(3, requires_grad=True)
    made = x.scatter_reduce(0, *places(leafax), "max")
    (first,) = leafax.autograd.grad(made.sum(), x, create_graph=True)
    assert first.tolist() == [0.0, 1.0, 1.0]
    (plain,) = leafax.autograd.grad(x.scatter_reduce(0, *places(leafax), "max").sum(), x)
    assert plain.tolist() == [0.0, 1.0, 1.0]


def test_an_infinite_gradient_of_nansum() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, NAN, 2.0], requires_grad=True)
        (x.nansum() * INF).backward()
        log(x.grad)
