"""The response norm that PyTorch took over from Lua Torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._ops.creation.from_arrays import from_numpy


def cross_map_lrn2d(input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """Divide by a power of the mean square of neighbouring channels.

    As in PyTorch, the first channel belongs to every window, and an even `size` takes the windows
    of the next smaller odd one. Gradients are those of this function; PyTorch's take other windows.
    """
    if input.dim() != 4:
        raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
    reach = int((size - 1) / 2)
    place = np.arange(input.size(1))
    near = np.abs(place[:, None] - place) <= reach
    near[reach + 1 :, :1] = True
    windows = from_numpy(near).to(input.dtype)
    squares = (windows @ input.square().flatten(2)).view(input.shape)
    return input * (squares * (alpha / size) + k).pow(-beta)
