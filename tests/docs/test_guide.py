"""The code of guides in docs/ runs and prints what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import guides

pytest.importorskip("flax")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["from-pytorch.md", "precision.md"])
def test_guide_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    guides.check_guide(DOCS / name)


def test_scaling_runs_on_eight_devices_and_prints_what_it_says() -> None:
    flags = (
        "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true"
    )
    settings = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
    ran = subprocess.run(
        [sys.executable, guides.__file__, str(DOCS / "scaling.md")],
        env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
