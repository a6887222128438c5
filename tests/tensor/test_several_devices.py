"""Tensors on four devices of a simulated machine, in a process of its own."""

from pathlib import Path

import pytest
from helpers.own_process import names_of, run_tests

TESTS = Path(__file__).parent / "on_four_devices.py"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Reports of what failed, by test."""
    return run_tests(TESTS, tmp_path_factory.mktemp("devices"), devices=4)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_four_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])
