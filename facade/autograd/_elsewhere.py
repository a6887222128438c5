"""Functions of `torch.autograd.graph` for PyTorch's compiler and for CUDA's streams."""

from __future__ import annotations

from contextlib import AbstractContextManager

_BUDGET = "torch.autograd.graph.region_activation_memory_budget"


def region_activation_memory_budget(budget: float) -> AbstractContextManager[None]:
    """Set which share of a region's activations a compiler keeps; there is no such region here.

    Args:
      budget: from 0, everything is computed again, to 1.

    Raises:
      TypeError: if `budget` is no number.
      ValueError: if it is not between 0 and 1.
      RuntimeError: always else, as in PyTorch outside of its compiler. `utils.checkpoint` computes
        activations again.
    """
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{_BUDGET}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{_BUDGET}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{_BUDGET} can only be used inside a torch.compile region; it has no effect in eager mode."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Do nothing: XLA orders what runs, so gradients are never of another stream."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Do nothing: XLA orders what runs, so no stream of a capture can be stale."""
