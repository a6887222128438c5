"""What formulas of gradients are written with: numbers, conjugates, dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional import TABLE, Op

from .._record import apply

# Takes a `_formulas.Saved`, returns the gradient for one operand.
Formula = Callable[[Any], Any]


def by_number(name: str) -> Op:
    """An op of PyTorch's that takes a number and has an edge for the tensor alone."""
    op = TABLE[name]
    backward = op.backward.replace("Backward0", "Backward1")
    return Op(op.fn, name=name, backward=backward, saves=op.saves, numbers=op.numbers)


MUL, ADD, SUB, DIV = map(by_number, ("mul", "add", "sub", "div"))


def times(t: Any, number: Any) -> Any:
    """A tensor times a number, as PyTorch multiplies them."""
    return apply(MUL, t, number)


def conj(t: Any) -> Any:
    """The conjugate of a number or a complex tensor; a real tensor itself."""
    if isinstance(t, (int, float, complex)):
        return t.conjugate()
    return t.conj() if t.is_complex() else t


def dims_of(dim: Any, ndim: int) -> list[int]:
    """The dims that a reduction was given, from 0 on and in order; of an empty list all."""
    dims = [dim] if isinstance(dim, int) else list(dim) or list(range(ndim))
    return sorted(d % ndim for d in dims) if ndim else []
