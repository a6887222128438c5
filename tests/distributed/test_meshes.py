"""PyTorch's names for meshes, on eight devices in a process of its own."""

from pathlib import Path

import pytest
from helpers.own_process import check_report, names_of, reports_of

TESTS = Path(__file__).parent / "on_eight_devices.py"
outcomes = reports_of(TESTS)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_eight_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    check_report(name, outcomes)
