"""Checkpoints of runs that are sharded over eight devices, all in one process that has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from helpers import sharded_runs


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By check, what went wrong."""
    directory = tmp_path_factory.mktemp("sharded")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    run = subprocess.run(
        [sys.executable, sharded_runs.__file__, str(directory)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(map(json.loads, run.stdout.splitlines()))


@pytest.mark.parametrize("check", [check.__name__ for check in sharded_runs.CHECKS])
def test_a_sharded_run(check: str, found: dict[str, str]) -> None:
    assert found[check] == ""
