"""Models on a mesh of eight devices, in a process of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("flax")
TESTS = Path(__file__).parent / "on_eight_devices.py"
NAMES = [
    node.name
    for node in ast.parse(TESTS.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


def run_tests(report: Path, marked: str) -> dict[str, list[str]]:
    """Run the tests with these marks, and return what failed, by test."""
    flags = (
        "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true"
    )
    # Collectives of programs that run at once wait for each other where CPUs are few.
    settings = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
    options = "-n0", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "-m", marked
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(TESTS)],
        cwd=TESTS.parents[2], env={**os.environ, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert report.exists(), ran.stdout + ran.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        name = case.attrib["name"].partition("[")[0]
        errors = found.setdefault(name, [])
        for kind in ("failure", "error"):
            errors += [f"{case.attrib['name']}\n{e.text}" for e in case.iter(kind)]
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_tests(tmp_path_factory.mktemp("sharding") / "report.xml", "not exhaustive")


@pytest.mark.parametrize("name", NAMES)
def test_on_eight_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])


@pytest.mark.exhaustive
def test_all_layouts_on_eight_devices(tmp_path: Path) -> None:
    found = run_tests(tmp_path / "report.xml", "exhaustive")
    assert found and not any(found.values()), found
