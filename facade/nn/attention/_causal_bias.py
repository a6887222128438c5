"""Causal biases of attention: triangular masks that are known by their sizes."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from ..._core.dtypes import bool as bool_dtype
from ..._ops.creation.factories import ones


class CausalVariant(IntEnum):
    """The corner of the scores at which the triangle begins."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias:
    """Stand for a triangular mask in `scaled_dot_product_attention`; no tensor of its own.

    Args:
      variant: in which corner the diagonal begins; both are the same for square scores.
      seq_len_q: how many queries.
      seq_len_kv: how many keys.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=2,
            )

    @property
    def is_plain(self) -> bool:
        """Tell whether the mask is the one that `is_causal=True` asks for."""
        square = self.seq_len_q == self.seq_len_kv
        return square or self.variant == CausalVariant.UPPER_LEFT

    def _materialize(self, device: Any = None) -> Any:
        """Make the mask `(seq_len_q, seq_len_kv)`, True where to attend."""
        mask = ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=bool_dtype)
        upper = self.variant == CausalVariant.UPPER_LEFT
        return mask.tril(0 if upper else self.seq_len_kv - self.seq_len_q)

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Make a mask by which each query attends to the first keys, up to its own place."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Make a mask by which the last query attends to all keys, each one before to one key less."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
