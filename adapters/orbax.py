"""A whole training run in an orbax checkpoint: it goes on as if it had never stopped.

Parameters and statistics, which of them are frozen, optimizer state, schedulers, averages, the
random generator, the step: all by name, as arrays and JSON. A checkpoint is written beside the
others and takes its name when it is complete: whatever kills the process leaves the last good one.
Arrays that are sharded over a mesh are written and read by their shards, and go to where the run
that restores them has its own: another mesh, or one device.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import orbax.checkpoint as ocp

import leafax
from leafax.distributed.checkpoint import writing
from leafax.distributed.checkpoint.placement import copied_to_host, homes_of, placed, restore_args
from leafax.functional.execution.tracebacks import end_at_callers

from ._files.packing import pack, unpack
from ._modules.run_part import (
    Undo,
    is_model,
    load_part,
    packed_part,
    placed_like_parameters,
    undo_of,
)

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
        self._manager = ocp.CheckpointManager(
            os.path.abspath(directory),
            options=ocp.CheckpointManagerOptions(max_to_keep=keep, create=True),
            item_handlers={
                "arrays": ocp.PyTreeCheckpointHandler(),
                "meta": ocp.JsonCheckpointHandler(),
            },
        )

    def steps(self) -> list[int]:
        """Return the steps that there are complete checkpoints of."""
        return sorted(ocp.utils.checkpoint_steps(self._manager.directory))

    def save(self, step: int, *, wait: bool = True) -> None:
        """Write a checkpoint; it exists once it is complete.

        Args:
          step: its number.
          wait: return when it is complete. False returns once the values are on their way to the
            host: training goes on while a thread writes them, and may change what it likes. The
            next `save` waits until this one is written, and so do `restore`, `wait` and the end
            of the process.

        Raises:
          TypeError: a state dict with something that is neither number, string nor tensor.
          ValueError: there is one of this step already.
          Exception: of the file system; also from an earlier save that did not wait.
        """
        self.wait()
        if step in self.steps():
            raise ValueError(f"there is a checkpoint of step {step} already")
        arrays: dict[str, Any] = {}
        meta: dict[str, Any] = {"step": step, "parts": {}, "kinds": {}}
        for name, part in self.parts.items():
            meta["parts"] |= packed_part(name, part, arrays)
            meta["kinds"][name] = type(part).__name__
        for name, generator in _generators():
            meta["parts"][name] = pack(generator.get_state(), arrays, name)
        self._manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.PyTreeSave(copied_to_host(arrays)), meta=ocp.args.JsonSave(meta)
            ),
            force=True,
        )
        writing.begin(self._manager)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is complete.

        Raises:
          Exception: it could not be written, for instance because the disk is full.
        """
        writing.finish(self._manager)

    def restore(self, step: int | None = None) -> int:
        """Put everything back as it was; returns the step.

        Args:
          step: by default the last one.

        Raises:
          FileNotFoundError: no complete checkpoint, or none of this step.
          ValueError: the checkpoint has other parts; nothing was restored.
          Exception: what `load_state_dict` of a part raises, for instance a RuntimeError with the
            tensors of a model that are missing, unexpected or of another shape; then all parts
            are as they were.
        """
        self.wait()
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            which = "" if step is None else f" of step {step}"
            raise FileNotFoundError(
                f"no complete checkpoint{which} in `{self._manager.directory}`; there are {steps}"
            )
        step = steps[-1] if step is None else step
        meta = self._read(step, meta=ocp.args.JsonRestore()).meta
        if set(meta["kinds"]) != set(self.parts):
            raise ValueError(
                f"the checkpoint has the parts {sorted(meta['kinds'])}, the run has "
                f"{sorted(self.parts)}"
            )
        now: dict[str, Any] = {}
        # A model first: what an optimizer takes over depends on what trains.
        names = sorted(self.parts, key=lambda name: not is_model(self.parts[name]))
        undo = {}
        for name in names:
            packed = packed_part(name, self.parts[name], now)
            undo[name] = undo_of(name, self.parts[name], packed, now)
        arrays = self._arrays(step, now)
        for name in names:
            try:
                load_part(name, self.parts[name], meta["parts"], arrays)
            except BaseException as error:
                error.add_note(
                    f"The checkpoint of step {step} does not fit the part `{name}`; nothing was "
                    f"restored."
                )
                _undo([undo[n] for n in names[: names.index(name) + 1]])
                raise
        for name, generator in _generators():
            if name in meta["parts"]:
                generator.set_state(unpack(meta["parts"][name], arrays))
        return step

    def _arrays(self, step: int, now: dict[str, Any]) -> dict[str, Any]:
        """Read a checkpoint's arrays to where the run has its own.

        Args:
          now: the run's arrays, by name.
        """
        found = self._manager.item_metadata(step)["arrays"].tree
        for name, part in self.parts.items():
            if hasattr(part, "param_groups"):
                now = placed_like_parameters(name, part, found) | now
        homes = homes_of(found, now)
        args = ocp.args.PyTreeRestore(restore_args=restore_args(found, homes))
        return placed(self._read(step, arrays=args).arrays, homes)

    def _read(self, step: int, **args: Any) -> Any:
        return self._manager.restore(step, args=ocp.args.Composite(**args))


def _generators() -> list[tuple[str, leafax.Generator]]:
    """List the default generators with their names in checkpoints."""
    found = leafax.random.generators_by_device()
    return [(f"/generator/{w}" if w != "cpu" else "/generator", g) for w, g in found.items()]


def _undo(steps: list[Undo]) -> None:
    for undo in steps:
        # What cannot even take over its own state does not keep the others from theirs.
        with contextlib.suppress(Exception):
            undo()


end_at_callers(__name__)
