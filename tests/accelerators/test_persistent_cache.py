"""`leafax.cache`: programs that an earlier process compiled are read from disk."""

import subprocess
import sys
from pathlib import Path

import jax
import pytest

import leafax

SCRIPT = """
import sys, leafax, numpy as np
leafax.zeros(3).sum().item()  # JAX has looked for a folder before
leafax.cache(sys.argv[1])
leafax.explain(clear=True)
net = leafax.nn.Sequential(leafax.nn.Linear(4, 8), leafax.nn.Tanh(), leafax.nn.Linear(8, 2))
with leafax.no_grad():
    for p in net.parameters():
        p.fill_(0.1)
optimizer = leafax.optim.AdamW(net.parameters())
x = leafax.from_numpy(np.ones((3, 4), np.float32))
for _ in range(4):
    loss = net(x).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
report = leafax.explain()
made = [c for c in report.compilations if not c.read]
print(len(made), len(report.compilations), loss.item())
print(next((x for x in str(report).split("\\n") if "on disk" in x), "nothing read"))
"""


def run(folder: Path) -> tuple[list[float], str]:
    options = {"capture_output": True, "text": True, "check": True}
    ran = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], **options)  # type: ignore[call-overload]
    numbers, summary = ran.stdout.strip().split("\n")[-2:]
    return [float(x) for x in numbers.split()], summary


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    (made, total, loss), told = run(folder)
    assert made == total >= 1 and told == "nothing read"
    (made, again, same), told = run(folder)
    assert made == 0 and again == total and same == loss
    assert told == f"of what XLA compiled, {total:.0f} were read from the cache on disk"


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
