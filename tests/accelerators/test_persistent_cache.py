"""`leafax.cache`: programs that an earlier process compiled are read from disk."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import leafax
from leafax._core.run_log import Compilation, Run
from leafax._runtime.explain import Report

RUN = Run("item()", ("x.py", 1), 1, "compiled", 0.1, 1, 1, 0, 0)

EXAMPLE = Path(__file__).parents[2] / "examples" / "cached_programs.py"
SAYS = r"loss (\S+)\nfirst step \S+ s: (\d+) compiled, (\d+) read from "


def run(folder: Path) -> tuple[str, int, int]:
    """Return the loss of the example, and how many programs it compiled and read."""
    command = [sys.executable, str(EXAMPLE), str(folder)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.match(SAYS, printed)
    assert found, printed
    return found[1], int(found[2]), int(found[3])


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    loss, compiled, read = run(folder)
    assert compiled >= 2 and read == 0
    assert run(folder) == (loss, 0, compiled)


def test_what_was_read_is_told() -> None:
    told = str(Report([RUN], [Compilation("program", "", ("x", 1), 0.1, "", True)]))
    assert "of what XLA compiled, 1 were read from the cache on disk" in told


def test_settings_are_jaxs(tmp_path: Path) -> None:
    names = (
        "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes", "jax_compilation_cache_max_size",
    )  # fmt: skip
    before = {name: getattr(jax.config, name) for name in names}
    try:
        leafax.cache(tmp_path / "c", max_bytes=1000, min_seconds=0.5)
        assert [getattr(jax.config, n) for n in names] == [str(tmp_path / "c"), 0.5, -1, 1000]
        leafax.cache(None)
        assert jax.config.jax_compilation_cache_dir is None  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="`max_bytes` must not be negative, got -1"):
            leafax.cache(tmp_path, max_bytes=-1)
        with pytest.raises(ValueError, match="`min_seconds` must not be negative"):
            leafax.cache(tmp_path, min_seconds=-1.0)
    finally:
        leafax.cache(None)
        for name, value in before.items():
            jax.config.update(name, value)
