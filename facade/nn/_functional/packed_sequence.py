"""Packed sequences: the steps of several sequences in one tensor, without padding."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..._ops.creation.from_data import as_tensor


class Places:
    """Hold where the steps of packed sequences are, in padded and in packed data.

    Attributes:
      sizes: how many sequences have each step.
    """

    def __init__(self, sizes: np.ndarray) -> None:
        self.sizes = sizes
        steps, most = len(sizes), int(sizes[0]) if len(sizes) else 0
        self.shape = (steps, most)
        self._there = np.arange(most) < sizes[:, None]

    @classmethod
    def of(cls, batch_sizes: Any) -> Self:
        """Read them off a tensor of batch sizes; no program runs for it if it is at rest."""
        return cls(np.asarray(batch_sizes.tolist(), np.int64).reshape(-1))

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> Self:
        """Find them for sequences of these lengths, which fall."""
        return cls((lengths[None] > np.arange(lengths[0])[:, None]).sum(1))

    def lengths(self) -> np.ndarray:
        """Return how long each sequence is."""
        return self._there.sum(0)

    def live(self) -> Any:
        """Return `(T, N)`, True where a sequence has a step."""
        return as_tensor(self._there)

    def padded(self, data: Any, fill: Any = None, steps: int | None = None) -> Any:
        """Put packed data `(total, ...)` into `(T, N, ...)`.

        Args:
          fill: what stands behind the ends; some of the data if None.
          steps: how many to have at least.
        """
        there = self._there
        if steps is not None and steps > len(there):
            there = np.concatenate([there, np.zeros((steps - len(there), there.shape[1]), bool)])
        place = np.where(there, np.cumsum(there).reshape(there.shape) - 1, 0)
        shape = (*there.shape, *data.shape[1:])
        out = data.index_select(0, as_tensor(place.reshape(-1))).view(shape)
        if fill is None or there.all():
            return out
        behind = as_tensor(~there).view(there.shape + (1,) * (len(shape) - 2))
        return out.masked_fill(behind, fill)

    def packed(self, padded: Any) -> Any:
        """Take `(T, N, ...)` for the data without what stands behind the ends."""
        steps, most = self.shape
        place = np.flatnonzero(self._there)
        flat = padded.narrow(0, 0, steps).reshape((steps * most, *padded.shape[2:]))
        return flat.index_select(0, as_tensor(place))
