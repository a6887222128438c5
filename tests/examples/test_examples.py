"""The README's code and commands, and the main example on real digits."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cheap_programs import OPTIMIZED

import leafax

for package in ("flax", "mlxtend", "optax", "safetensors", "tqdm", "PIL"):
    pytest.importorskip(package)
ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))
finetune = importlib.import_module("finetune_image")
README = (ROOT / "README.md").read_text()


# ---------------------------------------------------------------- README


def test_readme_has_the_two_commands() -> None:
    assert "pip install -e '.[examples]' && python examples/finetune_image.py\n" in README
    assert "pip install -e '.[test]' && python -m pytest\n" in README


def test_readme_code_runs_and_prints_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a fresh process: no other optimizer had other numbers.
    monkeypatch.setattr(leafax.optim._base.hyperparameters, "_FIRST_NUMBERS", {})
    leafax.synchronize()
    leafax.explain(clear=True)
    leafax.manual_seed(0)
    code, with_flax = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), scope)
    printed = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    for line in shown.splitlines():
        if line == "...":  # what comes before the first whole step
            continue
        pattern = re.sub(r"\d+(\\\.\d+)?", r"[\\d.]+", re.escape(line))
        pattern = re.sub(r"(\\ )+", " +", pattern)
        assert any(re.fullmatch(pattern, other) for other in printed), f"not printed: {line}"
    steps = [run for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert len(steps) == 100
    assert [run.how for run in steps[5:]] == ["cached"] * 95
    exec(compile(with_flax, "README.md", "exec"), scope)
    loop = "for step in range(2):" + code.partition("for step in range(100):")[2]
    exec(compile(loop, "README.md", "exec"), scope)
    model, optimizer = scope["model"], scope["optimizer"]
    frozen = [name for name, p in model.named_parameters() if p.grad is None]
    assert frozen == ["layers_0.bias", "layers_0.kernel"] and len(optimizer.state) == 2


# ---------------------------------------------------------------- the main example


@pytest.mark.exhaustive
def test_default_run_reaches_90_percent(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples/finetune_image.py"), "--out", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    accuracy = re.search(r"([\d.]+)% of 1000 held-out digits are right, \d+ s after", run.stdout)
    assert accuracy is not None and float(accuracy[1]) >= 90
    assert re.search(r"backbone +147 tensors +float32 +frozen", run.stdout)
    assert "1 compiled, by optimizer.step()" in run.stdout
    assert "499 cached, by optimizer.step()" in run.stdout
    assert "trained 12,810 numbers; Adam holds 102,488 bytes" in run.stdout
    assert "500/500" in run.stderr, "a progress bar"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", ["gradual", "all"])
def test_other_trainings_save_what_trained(what: str, tmp_path: Path) -> None:
    small = ["--limit", "64", "--size", "32", "--epochs", "1", "--out", str(tmp_path)]
    finetune.main(["--train", what, *small])  # fails unless the file restores the accuracy
    model = finetune.load(tmp_path / "finetuned.safetensors")
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "classifier.kernel" in trained
    assert "backbone.blocks_15.project.bn.scale" in trained
    assert ("backbone.stem.conv.kernel" in trained) == (what == "all")


def test_a_file_of_another_network_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "other.safetensors"
    save_file({"elsewhere": np.zeros(2)}, path, metadata={"trained": "[]"})
    with pytest.raises(ValueError, match="is of another network: it has elsewhere"):
        finetune.load(path)


@pytest.mark.exhaustive
def test_the_norm_of_the_gradients_is_free() -> None:
    """Logging it neither differentiates what is frozen nor keeps anything more."""
    plain, logged = one_step(norm=False), one_step(norm=True)
    assert logged["temp"] <= 1.02 * plain["temp"]
    assert logged["flops"] <= 1.001 * plain["flops"]


def one_step(norm: bool) -> dict[str, float]:
    """Return XLA's analysis of the program of one step with a frozen backbone."""
    from leafax._runtime import cut  # type: ignore[attr-defined]

    model = finetune.pretrained("head")
    optimizer = leafax.optim.Adam(finetune.parameter_groups(model))
    x, y = leafax.ones(4, 32, 32, 3), leafax.arange(4)
    leafax.synchronize()
    loss = leafax.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    seen: Any = finetune.gradient_norm(model) if norm else None
    optimizer.step()
    assert seen is None or seen.item() > 0
    _, plan = cut.plans[-1]
    inputs = [entry.aval for entry in plan.program.entries if hasattr(entry, "aval")]
    compiled = plan.lowered([np.zeros(a.shape, a.dtype) for a in inputs]).compile(OPTIMIZED)
    return {
        "temp": compiled.memory_analysis().temp_size_in_bytes,
        "flops": compiled.cost_analysis()["flops"],
    }
