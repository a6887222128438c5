"""PyTorch's `torch.quasirandom`: Sobol' sequences, by SciPy's, which have the same numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import qmc

from ._core.default_dtype import get_default_dtype
from ._ops.creation.factories import randint
from ._ops.creation.from_data import tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draw points of a Sobol' sequence, which fill the unit cube evenly.

    Args:
      dimension: of the cube.
      scramble: shuffle the digits by chance.
      seed: what chance begins with; by default leafax's own generator says.

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        if scramble and seed is None:
            seed = int(randint(2**31 - 1, ()))
        self._points: Any = qmc.Sobol(
            dimension, scramble=scramble, bits=self.MAXBIT, seed=np.random.default_rng(seed)
        )
        self.num_generated = 0

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Return the next points.

        Args:
          n: how many.
          out: a tensor to write them into.
          dtype: of the points; by default the default dtype.

        Returns:
          A tensor `(n, dimension)`.
        """
        with warnings.catch_warnings():  # SciPy's, of a number that is no power of 2
            warnings.simplefilter("ignore")
            points = self._points.random(n)
        self.num_generated += n
        made = tensor(points, dtype=get_default_dtype() if dtype is None else dtype)
        return made if out is None else out.resize_as_(made).copy_(made)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """Return the next `2**m` points.

        Raises:
          ValueError: the points so far and these are no power of 2.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self._points.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        given = [f"dimension={self.dimension}"]
        given += ["scramble=True"] if self.scramble else []
        given += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(given)})"
