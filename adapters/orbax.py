"""A whole training run in an orbax checkpoint: it goes on as if it had never stopped.

Parameters and statistics, which of them are frozen, optimizer state, schedulers, averages, the
random generator, the step: all by name, as arrays and JSON. A checkpoint is written beside the
others and takes its name when it is complete: whatever kills the process leaves the last good one.
"""

from __future__ import annotations

import os
from typing import Any

import orbax.checkpoint as ocp

import leafax
from leafax.functional.execution.tracebacks import end_at_callers

from ._files.packing import pack, unpack
from ._modules.module import model_of

Path = str | os.PathLike[str]


class Run:
    """Saves and restores what a training run consists of.

    Args:
      directory: where the checkpoints are; made if it is not there.
      keep: how many of the last ones stay; None for all.
      parts: by name: models, optimizers, schedulers, averages, gradient scalers, adapters;
        anything with `state_dict()` and `load_state_dict()`.

    >>> import tempfile, leafax
    >>> from flax import nnx
    >>> from leafax.adapters import nnx as models, orbax
    >>> model = models.Model(nnx.Linear(2, 1, rngs=nnx.Rngs(0))).freeze("kernel")
    >>> optimizer = leafax.optim.Adam(model.parameters())
    >>> run = orbax.Run(tempfile.mkdtemp(), model=model, optimizer=optimizer)
    >>> run.save(100)
    >>> run.restore()
    100
    """

    def __init__(self, directory: Path, *, keep: int | None = 3, **parts: Any) -> None:
        for name, part in parts.items():
            if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise TypeError(
                    f"`{name}` has no `state_dict()` and `load_state_dict()`, got "
                    f"{type(part).__name__}"
                )
        self.parts = parts
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, enable_async_checkpointing=False, create=True
        )
        self._manager = ocp.CheckpointManager(os.path.abspath(directory), options=options)

    def steps(self) -> list[int]:
        """Return the steps that there are complete checkpoints of."""
        return sorted(self._manager.all_steps())

    def save(self, step: int) -> None:
        """Write a checkpoint; it exists once it is complete.

        Raises:
          TypeError: a state dict with something that is neither number, string nor tensor.
          ValueError: there is one of this step already.
        """
        if step in self.steps():
            raise ValueError(f"there is a checkpoint of step {step} already")
        arrays: dict[str, Any] = {}
        meta: dict[str, Any] = {"step": step, "parts": {}, "kinds": {}}
        for name, part in self.parts.items():
            meta["parts"][name] = pack(part.state_dict(), arrays, name)
            meta["kinds"][name] = type(part).__name__
            if hasattr(part, "named_buffers"):
                meta["parts"][f"{name}/masks"] = pack(_masks(part), arrays, f"{name}/masks")
        meta["parts"]["/generator"] = pack(leafax.get_rng_state(), arrays, "/generator")
        self._manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardSave(arrays), meta=ocp.args.JsonSave(meta)
            ),
            force=True,
        )
        self._manager.wait_until_finished()

    def restore(self, step: int | None = None) -> int:
        """Put everything back as it was; returns the step.

        Args:
          step: by default the last one.

        Raises:
          FileNotFoundError: no complete checkpoint, or none of this step.
          ValueError: the checkpoint has other parts; nothing was restored.
        """
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            which = "" if step is None else f" of step {step}"
            raise FileNotFoundError(
                f"no complete checkpoint{which} in `{self._manager.directory}`; there are {steps}"
            )
        step = steps[-1] if step is None else step
        held = self._manager.restore(
            step,
            args=ocp.args.Composite(arrays=ocp.args.StandardRestore(), meta=ocp.args.JsonRestore()),
        )
        arrays, meta = held.arrays, held.meta
        if set(meta["kinds"]) != set(self.parts):
            raise ValueError(
                f"the checkpoint has the parts {sorted(meta['kinds'])}, the run has "
                f"{sorted(self.parts)}"
            )
        for name, part in self.parts.items():
            if hasattr(part, "named_buffers"):
                _mask(part, unpack(meta["parts"][f"{name}/masks"], arrays))
            part.load_state_dict(unpack(meta["parts"][name], arrays))
        leafax.set_rng_state(unpack(meta["parts"]["/generator"], arrays))
        return step


def _masks(part: Any) -> dict[str, Any]:
    model = model_of(part)
    return {
        "trainable": {name: p.requires_grad for name, p in part.named_parameters()},
        "still": sorted(model._stopped()),
        "quiet": sorted(model._quiet()),
        "training": model._modes(),
    }


def _mask(part: Any, masks: dict[str, Any]) -> None:
    model, trainable = model_of(part), masks["trainable"]
    for name, p in part.named_parameters():
        if name in trainable:
            p.requires_grad_(trainable[name])
            p.grad = None if not trainable[name] else p.grad
    model._unsettle()
    model._stop_statistics(set(model._statistics()), False)
    model._stop_statistics(set(masks["still"]), True)
    model._quieten(set(trainable), False)
    model._quieten(set(masks["quiet"]), True)
    model._set_modes(masks["training"])


end_at_callers(__name__)
