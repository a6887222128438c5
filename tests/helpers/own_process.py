"""Tests that need several devices, which run in a process of their own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


def names_of(tests: Path) -> list[str]:
    """List the test functions of a file."""
    body = ast.parse(tests.read_text()).body
    return [n.name for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]


def run_tests(
    tests: Path, folder: Path, devices: int = 8, options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:  # fmt: skip
    """Run a file of tests where JAX has so many devices; return what failed, by test function.

    Args:
      folder: for the report.
      options: further ones of pytest.
      environment: further variables; its XLA_FLAGS replace those of this process.
    """
    report = folder / "report.xml"
    options = "-n0", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *options
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", **(environment or {})}
    flags = f"{settings.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    settings["XLA_FLAGS"] = flags
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tests)],
        cwd=Path(__file__).parents[2], env=settings,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert report.exists(), ran.stdout + ran.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        errors = found.setdefault(case.attrib["name"].partition("[")[0], [])
        for kind in ("failure", "error"):
            errors += [f"{case.attrib['name']}\n{e.text}" for e in case.iter(kind)]
    return found


def reports_of(tests: Path, **asked: Any) -> Any:
    """Make the fixture of a module: what failed in a file of tests, by test function.

    Args:
      asked: as `run_tests` takes it.
    """

    @pytest.fixture(scope="module")
    def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
        return run_tests(tests, tmp_path_factory.mktemp(tests.stem), **asked)

    return outcomes


def check_report(name: str, outcomes: Mapping[str, list[str]]) -> None:
    """Fail with what failed in a test of another process, also if it did not run."""
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])
