"""`running`: the `vmap`s of this thread, as the layers below see them."""

from __future__ import annotations

from typing import Any

from ._batch_memory import BatchMemory
from ._example_writes import ExampleWrites
from ._loops import Loops
from ._refusals import Refusals


class RunningVmaps(Refusals, ExampleWrites, BatchMemory, Loops):
    """Answer all that `VmapStack` lists; each thread has its own levels."""


running = RunningVmaps()


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """Return the batch that a tensor stands for inside `vmap`, to be looked at only.

    Args:
      recurse: out of all the running `vmap`s, not the innermost only.
    """
    if not running.levels:
        return tensor
    whole, _ = running.levels[-1].find_batch(tensor)
    if not recurse and whole is not tensor:
        return whole
    with running.suspended():
        return debug_unwrap(whole, recurse=recurse)
