"""The device `meta`, where values have a shape and a dtype and no data.

Programs pass such values through: nothing computes them. To JAX one is a pytree without leaves, so
it may be an argument or a result of what is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


class _Meta:
    """The one device of its kind."""

    platform = "meta"
    id = 0

    def __repr__(self) -> str:
        return "meta"

    def __reduce__(self) -> str:
        return "META"


META = _Meta()
NO_DATA = "Cannot copy out of meta tensor; no data!"


class MetaArray:
    """An array without data.

    Attributes:
      shape, dtype: as of NumPy's arrays.
    """

    __slots__ = ("shape", "dtype", "__weakref__")
    nbytes = 0
    committed = True

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def devices(self) -> set[Any]:
        """Return the one device where it is, as arrays of JAX do."""
        return {META}

    def is_ready(self) -> bool:
        """Return False: there will never be anything to read."""
        return False

    def block_until_ready(self) -> MetaArray:
        """Refuse to be read.

        Raises:
          NotImplementedError: always, in PyTorch's words.
        """
        raise NotImplementedError(NO_DATA)

    def __reduce__(self) -> Any:
        return MetaArray, (self.shape, self.dtype)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise NotImplementedError(NO_DATA)


jax.tree_util.register_pytree_node(
    MetaArray, lambda x: ((), (x.shape, x.dtype)), lambda known, _: MetaArray(*known)
)
