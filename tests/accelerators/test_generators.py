"""Generators of devices: each has a stream of its own, and seeds reach all."""

from pathlib import Path

import pytest
from helpers.own_process import check_report, names_of, reports_of

import leafax

TESTS = Path(__file__).parent / "generators_of_devices.py"
outcomes = reports_of(TESTS, devices=4)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_four_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    check_report(name, outcomes)


def test_a_tensor_without_data_draws_nothing() -> None:
    leafax.manual_seed(0)
    expected = leafax.rand(3).tolist()
    leafax.manual_seed(0)
    leafax.rand(3, device="meta")
    leafax.nn.Linear(3, 3, device="meta")
    assert leafax.rand(3).tolist() == expected
