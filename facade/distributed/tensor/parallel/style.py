"""PyTorch's `torch.distributed.tensor.parallel.style`: how a module lies on several devices."""

from __future__ import annotations

from typing import Any


class ParallelStyle:
    """Base of the ways that a module lies on several devices; packages have tables of them.

    Args:
      options: what PyTorch's class takes, kept as attributes.
    """

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)


class ColwiseParallel(ParallelStyle):
    """A layer whose outputs lie on several devices."""


class RowwiseParallel(ParallelStyle):
    """A layer whose inputs lie on several devices."""


class SequenceParallel(ParallelStyle):
    """A layer whose sequences lie on several devices."""


class PrepareModuleInput(ParallelStyle):
    """A module whose inputs are moved."""


class PrepareModuleOutput(ParallelStyle):
    """A module whose outputs are moved."""
