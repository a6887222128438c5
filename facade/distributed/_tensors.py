"""Tensors that go through collectives: their arrays, and what is written into them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .._core.grad_modes import no_grad
from .._core.handle import Handle
from .._core.processes.group import ProcessGroup, default_group, group_of
from .._tracing.inputs import from_array


class Work:
    """A collective that has been started; JAX waits for its results where they are used."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True: what uses the result waits for it."""
        return True

    def is_completed(self) -> bool:
        """Return True: it has been started."""
        return True

    is_success = is_completed


def done(async_op: bool) -> Work | None:
    """Return what a collective returns."""
    return Work() if async_op else None


def member(group: Any, what: str) -> ProcessGroup | None:
    """Return the group of a collective; None, with PyTorch's warning, if this process is not in."""
    found = group_of(group)
    if found is None:
        warnings.warn(
            f"Running {what} on global rank {default_group().rank()} which does not belong to the "
            "given group.",
            stacklevel=3,
        )
    return found


def check_tensor(x: Any, name: str) -> None:
    """Raise as PyTorch does if something is no tensor."""
    if not isinstance(x, Handle):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(x)} instead."
        )


def check_tensors(x: Any, name: str) -> None:
    """Raise as PyTorch does if something is no list of tensors."""
    expected = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]"
    if not isinstance(x, list):
        raise TypeError(f"{expected}\n             but got {type(x)} instead.")
    if not all(isinstance(t, Handle) for t in x):
        raise TypeError(
            f"{expected}\n             but got {type(x)} with elements of type "
            f"{[type(t) for t in x]}."
        )


def check_count(tensors: Sequence[Any], group: ProcessGroup, what: str) -> None:
    """Raise if a list has not one tensor for each process."""
    if len(tensors) != group.size():
        raise RuntimeError(
            f"{what}: expected a list of {group.size()} tensors, one for each process, and got "
            f"{len(tensors)}"
        )


def check_only_at(here: bool, given: Any, name: str, which: str) -> None:
    """Raise as PyTorch does if the process of a list lacks it, or another one has it.

    Args:
      here: this is the process.
      given: the list, or None.
      name: the argument's.
      which: the process's part: `source` or `destination`.
    """
    if here and not given:
        raise ValueError(f"Argument ``{name}`` must be specified on {which} rank.")
    if not here and given:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{which} ranks.")


def arrays_of(tensors: Sequence[Any]) -> list[Any]:
    """Return the arrays of tensors, whose program runs."""
    return [t.detach().jax() for t in tensors]


def write(t: Any, array: Any) -> None:
    """Write an array into a tensor, whatever autograd knows of it."""
    with no_grad():
        t.detach().copy_(from_array(array).reshape(t.shape))


def place_in_group(group: ProcessGroup, rank: int | None, own: int | None, what: str) -> int:
    """Return a process's number in the group, given that among all or that in the group.

    Raises:
      ValueError: both are given, or the process is not in the group.
    """
    if own is not None:
        if rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if not 0 <= own < group.size():
            raise RuntimeError(f"{what}: invalid root rank: {own}")
        return own
    rank = 0 if rank is None else rank
    if rank not in group.ranks:
        if group is default_group():
            raise RuntimeError(f"{what}: invalid root rank: {rank}")
        raise ValueError(f"Global rank {rank} is not part of group {group}")
    return group.ranks.index(rank)
