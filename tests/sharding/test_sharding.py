"""Models on a mesh of eight devices, in a process of its own."""

from pathlib import Path

import pytest
from helpers.own_process import check_report, names_of, reports_of, run_tests

pytest.importorskip("flax")
TESTS = Path(__file__).parent / "on_eight_devices.py"
# Collectives of programs that run at once wait for each other where CPUs are few.
SETTINGS = {"JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
outcomes = reports_of(TESTS, options=("-m", "not exhaustive"), environment=SETTINGS)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_eight_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    check_report(name, outcomes)


@pytest.mark.exhaustive
def test_all_layouts_on_eight_devices(tmp_path: Path) -> None:
    found = run_tests(TESTS, tmp_path, options=("-m", "exhaustive"), environment=SETTINGS)
    assert found and not any(found.values()), found
