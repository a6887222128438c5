"""PyTorch's `torch.multiprocessing.reductions`: tensors are pickled as they always are."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import do_nothing as init_reductions


def reduce_tensor(tensor: Any) -> Any:
    """Return how pickle makes a tensor anew."""
    return tensor.__reduce_ex__(2)


__all__ = ["init_reductions", "reduce_tensor"]
