"""Samples that are computed by programs of their own, never by the training step's.

What a dataset does with tensors is done for each sample anew, and often not in the same way twice.
PyTorch does it at once; recorded, it would be part of the step's program, another one each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...._core.run_log import LOADER
from ...._core.trie import Trace, local
from ...._runtime.cut import cut


@contextmanager
def own_program() -> Iterator[None]:
    """Record apart from what is pending, and compute it at the end of the block."""
    running, local.trace = local.trace, Trace(local.root(local.mode))
    try:
        yield
        compute()
    finally:
        local.trace = running
        local.set_mode(local.mode)  # a generator may have left it in another


def compute() -> None:
    """Run what was recorded so far."""
    if local.trace.refs:
        cut(LOADER)
