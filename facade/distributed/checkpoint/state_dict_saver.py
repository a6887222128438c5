"""PyTorch's `torch.distributed.checkpoint.state_dict_saver`: state dicts, written by orbax."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import Future
from typing import Any

from ..distributed_c10d import is_initialized
from . import writing
from ._contents import array_of, leaves, name_of, pickled, state_of
from .filesystem import FileSystemWriter, folder
from .placement import copied_to_host


def save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
    use_collectives: bool = True,
) -> None:  # fmt: skip
    """Write a state dict to a folder; all processes call it.

    Tensors that are sharded over a mesh are written by their shards. The folder has its name once
    the checkpoint is complete. It is a checkpoint of orbax, which PyTorch does not read.

    Args:
      state_dict: nested dicts of tensors and of what can be pickled; things with a `state_dict()`
        stand for it.
      checkpoint_id: the folder.
      storage_writer: a `FileSystemWriter`, which names the folder otherwise.
    """
    writer = _write(state_dict, checkpoint_id, storage_writer, no_dist)
    writing.finish(writer)


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False, **options: Any,
) -> Future[None]:  # fmt: skip
    """Write a state dict in a thread, with the values that it has now.

    Returns:
      A future that is done when the checkpoint is complete.
    """
    writer = _write(state_dict, checkpoint_id, storage_writer, no_dist)
    done: Future[None] = Future()

    def wait() -> None:
        try:
            writing.finish(writer)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=wait, name="checkpoint").start()
    return done


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: Any, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """Write a state dict: the older name of `save`."""
    save(state_dict, storage_writer=storage_writer, no_dist=no_dist)


def _write(state_dict: Any, checkpoint_id: Any, storage_writer: Any, no_dist: bool) -> Any:
    import orbax.checkpoint as ocp

    if no_dist or not is_initialized():
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is "
            "to save in a single process.",
            stacklevel=3,
        )
    path = folder(storage_writer, checkpoint_id)
    if storage_writer is None:
        storage_writer = FileSystemWriter(path)
    storage_writer.check(path)
    kept: dict[str, Any] = {"format": pickled(1)}
    for place, value in leaves({k: state_of(v) for k, v in state_dict.items()}):
        array = array_of(value)
        if array is None:
            kept[f"object.{name_of(place)}"] = pickled(value)
        else:
            kept[f"tensor.{name_of(place)}"] = array
    writer = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())
    writer.save(path, args=ocp.args.PyTreeSave(copied_to_host(kept)), force=True)
    writing.begin(writer)
    return writer
