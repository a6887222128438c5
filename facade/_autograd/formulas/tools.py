"""Tools of gradient formulas: conjugates and dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Takes a `differentiate.Saved`, returns the gradient for one operand.
Formula = Callable[[Any], Any]


class NoFormula(Exception):
    """Raised by a formula that has nothing to say about the op as it was called."""


def conj(t: Any) -> Any:
    """Compute the conjugate of a number or a complex tensor; a real tensor itself."""
    if isinstance(t, (int, float, complex)):
        return t.conjugate()
    return t.conj() if t.is_complex() else t


def dims_of(dim: Any, ndim: int) -> list[int]:
    """Find the dims that a reduction was given, from 0 on and in order; of an empty list all."""
    dims = [dim] if isinstance(dim, int) else list(dim) or list(range(ndim))
    return sorted(d % ndim for d in dims) if ndim else []
