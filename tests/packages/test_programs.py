"""A package's model trains as under PyTorch where leafax stands for it, one program a step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, sys
import numpy as np
import torch
from einops import rearrange, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

values = np.random.default_rng(0)
model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2), nn.Linear(4, 8), nn.GELU(),
    EinMix("b t c -> b t d", "c d", "d", c=8, d=8), Reduce("b t d -> b d", "mean"), nn.Linear(8, 3),
)
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.from_numpy(values.normal(size=tuple(p.shape)).astype("float32") / 2))
x = torch.from_numpy(values.normal(size=(6, 1, 4, 4)).astype("float32"))
target = rearrange(repeat(torch.arange(3), "n -> n m", m=2), "n m -> (n m)")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
losses, rows = [], []
for _ in range(5):
    before = len(torch.explain()) if hasattr(torch, "explain") else 0
    loss = nn.functional.cross_entropy(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rows.append(len(torch.explain()) - before if hasattr(torch, "explain") else 1)
    losses.append(loss.item())
print(json.dumps([losses, rows, torch.__version__]))
"""


def run(folder: Path, *before: str) -> Any:
    (folder / "program.py").write_text(PROGRAM)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *before, "program.py"],
        capture_output=True, text=True, cwd=folder, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_layers_of_einops_train_as_under_pytorch(tmp_path: Path) -> None:
    ours, rows, version = run(tmp_path, "-m", "leafax")
    theirs, _, real = run(tmp_path)
    assert version == "2.13.0" and real.startswith(version)
    assert all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(ours, theirs, strict=True))
    assert rows[1:] == [1, 1, 1, 1]
