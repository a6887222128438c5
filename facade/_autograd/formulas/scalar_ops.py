"""Arithmetic with a number that PyTorch does in C++: nodes of their own names, without its edge.

Where a caller writes `x + 1` the number becomes a tensor, and `AddBackward0` has an edge for it
that leads nowhere. Functions that PyTorch composes of others add the number itself.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._dispatch.record import apply


def _op(name: str) -> Op:
    known = TABLE[name]
    backward = known.backward.replace("Backward0", "Backward1")
    # The number is no tensor that a backward would free.
    return Op(known.fn, name=name, backward=backward, numbers=known.numbers)


MUL, ADD, SUB, DIV = map(_op, ("mul", "add", "sub", "div"))


def plus(input: Any, number: Any) -> Any:
    """Compute `input + number`."""
    return apply(ADD, input, number)


def minus(input: Any, number: Any) -> Any:
    """Compute `input - number`."""
    return apply(SUB, input, number)


def times(input: Any, number: Any) -> Any:
    """Compute `input * number`."""
    return apply(MUL, input, number)


def over(input: Any, number: Any) -> Any:
    """Compute `input / number`."""
    return apply(DIV, input, number)
