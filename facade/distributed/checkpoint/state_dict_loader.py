"""PyTorch's `torch.distributed.checkpoint.state_dict_loader`: state dicts, read by orbax."""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._tracing.inputs import from_array
from ..distributed_c10d import get_rank, is_initialized
from ._contents import array_of, leaves, name_of, put, state_of, unpickled
from .api import CheckpointException
from .filesystem import folder
from .placement import homes_of, placed, restore_args


def load(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Read a checkpoint into a state dict; all processes call it.

    Tensors are written to where they lie: on another mesh than they were saved on, or one device.
    What else the state dict holds is replaced. Things with a `load_state_dict()` are given what
    was read. What the checkpoint has besides is not read.

    Args:
      state_dict: what to read, as `save` takes it.
      checkpoint_id: the folder.
      storage_reader: a `FileSystemReader`, which names the folder otherwise.

    Raises:
      CheckpointException: with what was missing or of another shape; then nothing was loaded.
    """
    if no_dist or not is_initialized():
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is "
            "to load in a single process.",
            stacklevel=2,
        )
    path = folder(storage_reader, checkpoint_id)
    states = {key: state_of(value) for key, value in state_dict.items()}
    try:
        read = _read(path, states)
    except Exception as error:
        rank = get_rank() if is_initialized() else 0
        failures: dict[int, tuple[BaseException, Any]] = {
            rank: (error, traceback.extract_tb(error.__traceback__))
        }
        raise CheckpointException("read", failures) from error
    with no_grad():
        for place, old in list(leaves(states)):
            new = read[name_of(place)]
            if isinstance(old, Handle) and isinstance(new, Handle):
                target: Any = old
                target.detach().copy_(new)
            else:
                states = put(states, place, new)
    for key, value in state_dict.items():
        if state_of(value) is value:
            state_dict[key] = states[key]
        else:
            value.load_state_dict(states[key])


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: Any, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """Read a checkpoint into a state dict: the older name of `load`."""
    load(state_dict, storage_reader=storage_reader, no_dist=no_dist)


def _read(path: str, states: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint has for each place of a state dict."""
    import orbax.checkpoint as ocp

    if not os.path.isdir(path):
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{path}'")
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
        found = reader.metadata(path).item_metadata.tree
        now: dict[str, Any] = {}
        wanted: dict[str, str] = {}
        for place, value in leaves(states):
            name = name_of(place)
            kinds = [k for k in ("tensor", "object") if f"{k}.{name}" in found]
            if not kinds:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            wanted[name] = f"{kinds[0]}.{name}"
            array = array_of(value)
            if array is not None and kinds[0] == "tensor":
                saved = tuple(found[wanted[name]].shape)
                if saved != array.shape:
                    raise ValueError(
                        f"Size mismatch between saved torch.Size({list(saved)}) and current: "
                        f"torch.Size({list(array.shape)}) for {name}"
                    )
                now[wanted[name]] = array
        chosen = {key: found[key] for key in wanted.values()}
        homes = homes_of(chosen, now)
        args = ocp.args.PyTreeRestore(
            item=dict.fromkeys(chosen, 0), restore_args=restore_args(chosen, homes),
            partial_restore=True,
        )  # fmt: skip
        arrays = reader.restore(path, args=args)
    objects = {key: unpickled(x) for key, x in arrays.items() if key.startswith("object.")}
    tensors = placed({k: x for k, x in arrays.items() if k not in objects}, homes)
    made = {**objects, **{key: from_array(x) for key, x in tensors.items()}}
    return {name: made[key] for name, key in wanted.items()}
