"""Models on a mesh of eight devices, in a process of its own."""

from pathlib import Path

import pytest
from helpers.own_process import names_of, run_tests

pytest.importorskip("flax")
TESTS = Path(__file__).parent / "on_eight_devices.py"
# Collectives of programs that run at once wait for each other where CPUs are few.
SETTINGS = {"JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("sharding")
    return run_tests(TESTS, folder, options=("-m", "not exhaustive"), environment=SETTINGS)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_on_eight_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])


@pytest.mark.exhaustive
def test_all_layouts_on_eight_devices(tmp_path: Path) -> None:
    found = run_tests(TESTS, tmp_path, options=("-m", "exhaustive"), environment=SETTINGS)
    assert found and not any(found.values()), found
