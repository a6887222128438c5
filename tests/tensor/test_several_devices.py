"""Tensors on four devices of a simulated machine, in a process of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "on_four_devices.py"
NAMES = [
    node.name
    for node in ast.parse(TESTS.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Reports of what failed, by test."""
    report = tmp_path_factory.mktemp("devices") / "report.xml"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    options = "-n0", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(TESTS)],
        cwd=TESTS.parents[2], env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
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


@pytest.mark.parametrize("name", NAMES)
def test_on_four_devices(name: str, outcomes: dict[str, list[str]]) -> None:
    assert name in outcomes, "it did not run"
    assert not outcomes[name], "\n".join(outcomes[name])
