"""Generators of devices: each has a stream of its own, and seeds reach all."""

from pathlib import Path

import pytest
from helpers.own_process import names_of, run_tests

import leafax

TESTS = Path(__file__).parent / "generators_of_devices.py"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Reports of what failed, by test."""
    return run_tests(TESTS, tmp_path_factory.mktemp("devices"), devices=4)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_four_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])


def test_a_tensor_without_data_draws_nothing() -> None:
    leafax.manual_seed(0)
    expected = leafax.rand(3).tolist()
    leafax.manual_seed(0)
    leafax.rand(3, device="meta")
    leafax.nn.Linear(3, 3, device="meta")
    assert leafax.rand(3).tolist() == expected
