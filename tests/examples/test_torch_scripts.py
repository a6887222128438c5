"""The scripts of `examples/torch_scripts/`: the same losses under PyTorch, one program a step."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from helpers.torch_style import FOLDER, load

import leafax

pytest.importorskip("sklearn")
SMALL: dict[str, dict[str, Any]] = {  # what the scripts' `main` are given
    "actor_critic": {},
    "char_gpt": {"batch": 4, "context": 8, "width": 16, "depth": 1, "count": 4},
    "convnet": {"batch": 8},
    "dcgan": {"batch": 4, "width": 4},
    "diffusion": {"batch": 16, "times": 4},
    "graph_attention": {},
    "lstm_words": {"batch": 4, "length": 4},
    "mobilenet_v2_frozen": {"batch": 16},  # norms of 4 numbers each would magnify the last bits
    "reinforce": {"longest": 8},
    "resnet18_frozen": {"batch": 4},
    "siamese": {"batch": 8},
    "super_resolution": {"batch": 4},
    "vae": {"batch": 8},
}
STEP = "optimizer.step()"
PROGRAMS = {  # of a step, where it is not one
    "actor_critic": ["item()", STEP],  # the action is asked for before the environment moves
    "dcgan": [STEP, STEP],  # two networks, two optimizers
}


def test_all_scripts_are_tested() -> None:
    assert {p.stem for p in FOLDER.glob("*.py") if "def main(" in p.read_text()} == SMALL.keys()


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", SMALL)
def test_losses_are_pytorchs_and_steps_are_programs(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = load(name, "--torch").main(steps=10, check=True, **SMALL[name])
    said = capsys.readouterr().out
    leafax.synchronize()
    leafax.explain(clear=True)
    losses = load(name).main(steps=10, check=True, **SMALL[name])
    runs = list(leafax.explain())

    assert len(losses) == 10
    assert len(set(losses)) == 10  # it does train
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    assert capsys.readouterr().out.count("\n") == said.count("\n") >= 10

    steps = [i for i, run in enumerate(runs) if run.reason == STEP]
    if name == "reinforce":
        # Each action is asked for, and an episode of another length is another program.
        assert len(steps) == 10
        between = {run.reason for run in runs[steps[0] : steps[-1]]}
        assert between == {STEP, "item()"}
        acted = [run for run in runs[steps[0] : steps[-1]] if run.reason == "item()"]
        assert len({run.nodes for run in acted}) == 1
        assert {run.how for run in acted} <= {"op by op", "cached"}
        return
    programs = PROGRAMS.get(name, [STEP])
    last = runs[: steps[-1] + 1][-3 * len(programs) :]
    assert [run.reason for run in last] == 3 * programs
    assert [run.how for run in last] == 3 * len(programs) * ["cached"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("arguments", [[], ["--torch"]])
def test_a_script_runs_from_the_command_line(arguments: list[str]) -> None:
    command = [sys.executable, str(FOLDER / "vae.py"), "--check", "--steps", "2", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "step    2  loss  46.655" in run.stdout
    assert not run.stderr
