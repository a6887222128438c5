"""Tolerances of the pseudo-inverse, norms of matrices that hold nothing, and where results lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def _rounded(t: Any) -> Any:
    return np.round(np.array(t.detach().tolist()), 8).tolist()


@pytest.mark.exhaustive
def test_tolerances_of_pinv() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        t, pinv = lib.tensor, lib.linalg.pinv
        a = t([[4.0, 1, 0], [1, 3, 1], [0, 1, 1e-3]], dtype=lib.float64)
        few = (
            {"rcond": 0.3}, {"atol": 0.8}, {"rtol": 0.1}, {"atol": 0.8, "rtol": 0.01},
            {"atol": 0.8, "hermitian": True}, {"rcond": t(0.1)}, {"atol": t(0.8)}, {"atol": 0.0},
            {"atol": t(0.0)}, {"rtol": t(0.1), "hermitian": True},
        )  # fmt: skip
        for named in few:
            log(_rounded(pinv(a, **named)))
        for named in ({"atol": t([0.8, 8.0])}, {"rcond": t([0.1, 0.9])}):
            log(_rounded(pinv(lib.stack([a, a * 2]), **named)))
        log(pinv(lib.zeros(0, 3), atol=0.1).shape)
        for name in ("rcond", "atol", "rtol"):
            log.attempt(pinv, a, **{name: t(1j)})
        wide = t([[1.0, 2, 3], [4, 5, 6]], dtype=lib.float64, requires_grad=True)
        made = pinv(wide, atol=0.1)
        log(type(made.grad_fn).__name__, lib.autograd.gradcheck(lambda a: pinv(a, atol=0.1), wide))
        (made**2).sum().backward()
        log(_rounded(wide.grad))


@pytest.mark.exhaustive
def test_norms_of_nothing() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 3, 3)):
            for order in (1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"):
                for keepdim in (False, True):
                    with log.catch():
                        made = lib.linalg.matrix_norm(lib.zeros(shape), order, keepdim=keepdim)
                        log(tuple(made.shape), made.tolist())
        for shape in ((), (3,), (2, 2, 2)):
            log.attempt(lib.linalg.norm, lib.ones(shape), "nuc")
            for dim in (None, 0, (0,), (0, 1)):
                log.attempt(lib.norm, lib.ones(shape), "nuc", dim)


def test_svd_without_vectors() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        for shape in ((4, 3), (2, 3, 5), (0, 3)):
            for some in (True, False):
                made = lib.svd(lib.zeros(shape), some=some, compute_uv=False)
                log([tuple(t.shape) for t in made])


def test_diagonals_lie_on_the_last_two_dims() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.arange(24.0).view(2, 3, 4).clone()
        for named in ({}, {"offset": 1}, {"offset": -1, "dim1": 0, "dim2": 2}, {"dim1": 1}):
            for t in (x, x.transpose(0, 2), x[0, 0]):
                with log.catch():
                    d = lib.linalg.diagonal(t, **named)
                    log(d.stride(), d.storage_offset(), lib.as_strided(x, d.shape, d.stride()))
        y = x.clone().requires_grad_() * 1
        lib.linalg.diagonal(y).mul_(2)
        log(y, y.grad_fn, lib.linalg.diagonal(y))


def test_solutions_lie_in_the_rows_of_their_matrix() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        for shape in ((4, 3), (3, 4), (3, 3), (2, 4, 3), (0, 4, 3)):
            a = lib.arange(float(math.prod(shape)), dtype=lib.float64).view(shape).cos()
            b = lib.ones(*shape[:-1], 2, dtype=lib.float64)
            log(lib.linalg.lstsq(a, b).solution.stride())
            log(lib.linalg.lstsq(a.requires_grad_(), b).solution.stride())


def test_eigenvalues_of_what_is_not_finite_are_nan() -> None:
    """Eigenvalues are NaN here; PyTorch returns what LAPACK leaves, which depends on the CPU."""
    inf, nan = math.inf, math.nan
    for rows in ([[inf, inf], [inf, 1.0]], [[nan, 0.0], [0.0, 1.0]], [[1.0, inf], [inf, 1.0]]):
        a = leafax.stack([leafax.tensor(rows), leafax.eye(2)])
        assert str(leafax.linalg.eigvalsh(a).tolist()) == "[[nan, nan], [1.0, 1.0]]"
    beside = leafax.tensor([[1.0, inf], [0.0, 2.0]])  # the triangle that is read
    assert leafax.linalg.eigvalsh(beside).tolist() == [1.0, 2.0]
