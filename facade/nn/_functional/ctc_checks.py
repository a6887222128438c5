"""Checks of the arguments of `ctc_loss`, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from ..._core.handle import Handle
from ..._core.python_data import name_of_type

_WHILE = "(while checking arguments for ctc_loss_allocate_outputs)"


def lengths_of(lengths: Any, name: str) -> Any:
    """Lengths as they are given: a tensor of integers, or a tuple of ints."""
    if isinstance(lengths, Handle):
        if lengths._v.dtype.kind not in "iub":
            raise RuntimeError(f"{name} must be integral")
        return lengths
    for place, n in enumerate(lengths):
        if not hasattr(n, "__index__"):
            raise TypeError(
                f"ctc_loss(): argument '{name}' failed to unpack the object at pos {place + 1} "
                f'with error "type must be tuple of ints,but got {name_of_type(n)}"'
            )
    return tuple(lengths)


def check_shapes(log_probs: Any, targets: Any, blank: int) -> None:
    """Raise unless there are scores `(T, N, C)`, targets `(N, S)` or `(S,)`, and such a label."""
    if 0 in log_probs.shape:
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.dim()}-dimensional tensor for "
            f"argument #1 'log_probs' {_WHILE}"
        )
    if targets.dim() not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument "
            f"#2 'targets' {_WHILE}"
        )
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")


def check_counts(log_probs: Any, input_lengths: Any, target_lengths: Any) -> None:
    """Raise unless there is a length for each sequence of the batch."""
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        count = given.numel() if isinstance(given, Handle) else len(given)
        if count != log_probs.shape[1]:
            raise RuntimeError(f"{name} must be of size batch_size")


def _check_size(targets: Any, size: int) -> None:
    if targets.shape[0] != size:
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension 0, but got size "
            f"{targets.shape[0]} for argument #2 'targets' {_WHILE}"
        )


def check_targets(targets: Any, batch: int, lengths: Any) -> None:
    """Raise unless the targets have room for the labels that are told.

    Args:
      lengths: of the targets as ints; None where only the data will tell.
    """
    for n in lengths or ():
        if n < 0:
            raise RuntimeError(
                f"Expected target_lengths to have value at least 0, but got value {n} {_WHILE}"
            )
    if targets.dim() == 1:
        _check_size(targets, sum(lengths))
        return
    _check_size(targets, batch)
    longest = max(lengths or (), default=0)
    if targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.shape[1]} for argument #2 'targets' {_WHILE}"
        )
