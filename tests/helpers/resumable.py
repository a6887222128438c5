"""A training run that saves every step; `test_checkpoints.py` kills it and goes on.

python tests/helpers/resumable.py DIRECTORY STEPS
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
from flax import linen as nn

import leafax as torch
from leafax.adapters import linen, orbax, safetensors
from leafax.optim import lr_scheduler, swa_utils


class Net(nn.Module):
    """Dropout and BatchNorm, so that the generator and the statistics matter."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = nn.BatchNorm(not train, name="bn")(nn.Dense(16, name="first")(x))
        x = nn.Dropout(0.3, deterministic=not train)(nn.tanh(x))
        return nn.Dense(1, name="head")(x)


X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")


def parts(thaw: bool = True) -> dict[str, Any]:
    torch.manual_seed(1)
    model = linen.Model(Net(), Net().init(jax.random.key(0), X))
    model.freeze("first", stats=True)
    if thaw:
        model.freeze("bn", stats=True)
    optimizer = torch.optim.AdamW(
        model.groups({"head": {"lr": 0.05}, "**.bias": {"weight_decay": 0.0}}), lr=0.01
    )
    scheduler = lr_scheduler.OneCycleLR(optimizer, [0.05, 0.01, 0.01], total_steps=40)
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    return {
        "model": model, "optimizer": optimizer, "scheduler": scheduler, "average": average,
    }  # fmt: skip


def step(i: int, model: Any, optimizer: Any, scheduler: Any, average: Any) -> float:
    if i == 3:
        model.unfreeze("first.bias")
    optimizer.zero_grad()
    loss = (model(torch.from_numpy(X)) ** 2).mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    average.update_parameters(model)
    return float(loss.item())


def main(directory: str, steps: int) -> None:
    made = parts()
    run = orbax.Run(f"{directory}/run", keep=2, **made)
    for i in range(steps):
        step(i, **made)
        run.save(i + 1)
        safetensors.save(f"{directory}/last.safetensors", made["model"])
        print("saved", i + 1, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
