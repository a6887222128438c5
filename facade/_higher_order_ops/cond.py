"""`torch.cond`: one of two functions, as a tensor says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.handle import Handle


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:  # fmt: skip
    """Call one of two functions.

    Args:
      pred: a bool, or a tensor of one element, which is looked at.
      true_fn: called with the operands if it is true.
      false_fn: called with the operands if not.
      operands: tensors.

    Raises:
      RuntimeError: `pred` is neither, or a branch cannot be called.

    >>> import leafax
    >>> cond(leafax.tensor(3.0) > 2, lambda x: x.neg(), lambda x: x, (leafax.ones(2),))
    tensor([-1., -1.])
    """
    if not isinstance(pred, bool | int | float | Handle):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Handle) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("Expect both branches to be callable.")
    return (true_fn if pred else false_fn)(*operands)
