"""Searching, counting and divisors where they are asked for what is unusual, against torch."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from helpers.sameness import Log, run, same

import leafax


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_the_least_integers(name: str, dtype: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        kind = getattr(t, dtype)
        least, most = t.iinfo(kind).min, t.iinfo(kind).max
        x = t.tensor([least, least, least, 6, 0, least, most, 100, 12], dtype=kind)
        y = t.tensor([least, 96, 1, least, least, 0, 99, 99, 18], dtype=kind)
        log(getattr(t, name)(x, y), getattr(t, name)(x[:, None], y[6:]))


def test_what_does_not_compare_is_searched_for_as_by_torchs_binary_search() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        nan, inf = math.nan, math.inf
        for row in ([1.0, nan], [nan, 1.0], [0.0, 1.0, 1.0, nan, 5.0], [], [2.0]):
            for right in (False, True):
                values = t.tensor([nan, inf, -inf, 0.0, 1.0, 2.0])
                log(t.searchsorted(t.tensor(row), values, right=right))
        log(t.searchsorted(t.tensor([[1, 3, 5], [2, 4, 6]]), t.tensor([[3, 9], [-1, 6]])))
        log(t.searchsorted(t.tensor([1, 2]), t.tensor([1.5])), t.bucketize(2, t.tensor([1, 2, 3])))


@pytest.mark.quick(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [2.5, 2, True, math.nan, 1 + 2j, 0.1])
def test_a_number_is_searched_for_in_the_dtype_that_it_has_with_the_row(number: Any) -> None:
    for kind in ("float32", "float64", "int64", "int32", "uint8", "bool"):

        @same
        def program(t: Any, log: Log, kind: str = kind) -> None:
            row = t.tensor([0.0, 0.1, 2, 3]).to(getattr(t, kind))
            for right in (False, True):
                for call in ((t.searchsorted, row, number), (t.bucketize, number, row)):
                    log.attempt(*call, right=right)


def test_sorters_are_checked() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        row, values = t.tensor([5, 1, 3]), t.tensor([0, 3, 6])
        for sorter in ([1, 2, 0], [1, 2], [1.0, 2.0, 0.0], [[1, 2, 0]]):
            log.attempt(t.searchsorted, row, values, sorter=t.tensor(sorter))
        log.attempt(t.searchsorted, t.tensor(1.0), t.tensor(1.0))
        log.attempt(t.searchsorted, t.tensor([[1, 2]]), 1)
        for dtype in (t.bool, t.complex64):
            log.attempt(t.searchsorted, row.to(dtype), values.to(dtype))

    def observed(t: Any, log: Log) -> None:
        for sorter in ([1, 2, 5], [1, -2, 0]):
            with log.catch():
                row, values = t.tensor([5, 1, 3]), t.tensor([0, 3, 6])
                t.searchsorted(row, values, sorter=t.tensor(sorter)).tolist()

    assert run(observed, leafax) == run(observed, torch)


@pytest.mark.exhaustive
def test_quantiles_beyond_0_and_1_are_refused() -> None:
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 2.0, 4.0])
        for q in ([-0.1], [0.5, 1.1], [math.nan], [0.0, 1.0]):
            for quantile in (t.quantile, t.nanquantile):
                with log.catch():
                    log(quantile(x, t.tensor(q)).tolist())

    assert run(program, leafax) == run(program, torch)


def test_unique_slices_of_dims_that_are_not_there() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([[1, 2], [0, 1], [1, 2]])
        for unique in (t.unique, t.unique_consecutive):
            for dim in (2, -3, -2):
                log.attempt(unique, x, dim=dim)
            log.attempt(unique, t.tensor(1), dim=0)
            for shape, dim in (((2, 0), 0), ((0, 1, 2, 0), 1), ((2, 0), -1)):
                log.attempt(unique, t.zeros(shape), dim=dim)


def test_repeats_have_the_size_that_was_promised() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        counts = t.tensor([1, 2])
        for size in (3, 4):
            log.attempt(t.repeat_interleave, counts, output_size=size)
            log.attempt(t.repeat_interleave, t.ones(2, 3), counts, dim=0, output_size=size)
            log.attempt(t.repeat_interleave, t.ones(2), counts[1:], dim=0, output_size=size)
        log.attempt(t.repeat_interleave, counts.float())


def test_lengths_of_segments_have_no_edge() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 2.0, 4.0], dtype=t.float64, requires_grad=True)
        for given in ({"lengths": t.tensor([1, 2])}, {"offsets": t.tensor([0, 1, 3])}):
            log(t.segment_reduce(x, "sum", **given))
        for bad in ({"lengths": t.tensor([-1, 4])}, {"offsets": t.tensor([0, 3, 2])}):
            for unsafe in (False, True):
                log.attempt(
                    lambda b, u: t.segment_reduce(x, "sum", unsafe=u, **b).tolist(), bad, unsafe
                )


def test_warnings_of_few_observations_and_of_scattering_with_a_reduction() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        log(t.cov(t.tensor([[1.0, 2.0], [3.0, 5.0]]), correction=2), t.cov(t.tensor(1.0)))
        zeros, at, ones = t.zeros(3), t.tensor([0]), t.ones(1)
        log(t.scatter(zeros, 0, at, ones, reduce="add"), t.scatter(zeros, 0, at, 2.0, reduce="add"))
        log(zeros.scatter_(0, at, ones, reduce="multiply"), zeros.scatter(0, at, ones))


def test_products_of_no_vectors_or_of_several_dtypes() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        log.attempt(t.cartesian_prod)
        log.attempt(t.cartesian_prod, t.tensor([1]), t.tensor([1.0]))
        log(t.cartesian_prod(t.tensor([1, 2]), t.tensor([3])))


def test_histograms_of_what_has_no_kernel_or_no_range() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 2.0])
        for bins, low, high in (
            (0, 0, 0),
            (3, 2, 1),
            (3, math.nan, 1),
            (3, 0, math.inf),
            (3, 0, 0),
        ):
            log.attempt(t.histc, x, bins, low, high)
        for dtype in (t.int64, t.uint8, t.bool, t.complex64):
            log.attempt(t.histc, x.to(dtype), 3)
        log.attempt(t.nonzero_static, x, size=-1)


def test_isin_takes_real_numbers_and_no_bools() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        flags, z, x = t.tensor([True]), t.tensor([1j]), t.tensor([1.0, 2.0])
        for pair in ((flags, flags), (x, flags), (flags, 1), (x, True), (z, x), (x, 1j), (x, 2)):
            log.attempt(t.isin, *pair)


def test_rotations_in_planes_that_are_not_there() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for dims in ((0, 2), (0, -3), (0, -2), (1, 1), (-1, 1), (0, 1), (3, 3), (0, 4)):
            log.attempt(t.rot90, t.tensor([[1, 2], [3, 4]]), 1, dims)
            log.attempt(t.rot90, t.arange(8).view(2, 2, 2), 1, dims)


def test_integrals_take_a_place_for_each_value() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        y = t.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 8.0]])
        for integral in (t.trapezoid, t.trapz, t.cumulative_trapezoid):
            for places in ([0.0, 1.0], [0.0], [0.0, 1.0, 3.0]):
                log.attempt(integral, y, t.tensor(places))
            log.attempt(integral, y, t.tensor([0.0, 2.0]), dim=0)
        log.attempt(t.trapezoid, y, dim=2)
        log.attempt(t.trapezoid, t.tensor(1.0))


def test_histograms_of_what_is_unusual() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        inf, nan = math.inf, math.nan
        for x in ([inf], [-inf], [1.0, inf], [nan], [1, 2], [True], [1j]):
            log.attempt(t.histc, t.tensor(x))
            log.attempt(t.histc, t.tensor(x), 4, 5, 1)
        for density in (False, True):
            log(t.histogramdd(t.ones(5, 0), 1, density=density)[0])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                log(*t.histogram(t.ones(0), 2, density=density))
        log(t.bincount(t.tensor([0, 1, 1]), t.tensor([1j, 2.0, 3 + 1j])))


def test_quantiles_without_nan_are_refused_by_the_same_name() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for x, q in ((t.ones(0), 0.5), (t.ones(0), 2.0), (t.ones(2).int(), 0.5), (t.ones(2), -1.0)):
            log.attempt(t.nanquantile, x, q)
            log.attempt(t.quantile, x, q)
        log.attempt(t.nanquantile, t.ones(2), 0.5, interpolation="none")
