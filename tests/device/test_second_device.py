"""Moves in a process whose default device is the second of two CPUs: nothing lands on the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cheap_programs import FLAGS


@pytest.mark.skipif("LEAFAX_TEST_DEVICE" in os.environ, reason="it is such a process")
def test_moves_from_a_second_cpu() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS} --xla_force_host_platform_device_count=2"
    told = {"LEAFAX_TEST_DEVICE": "cpu:1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_moves.py"],
        cwd=Path(__file__).parent, env={**os.environ, **told}, capture_output=True, text=True,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-1000:]
    assert "skipped" not in process.stdout
