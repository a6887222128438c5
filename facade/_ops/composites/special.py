"""Special functions that PyTorch makes of others and of arithmetic with numbers."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE, Op, camel

from ..._dispatch.record import apply
from .registry import composes


def by_number(name: str) -> Op:
    """Return an arithmetic op whose other operand is a number, which C++ does not make a tensor."""
    op = TABLE[name]
    return Op(op.fn, name=name, backward=f"{camel(name)}Backward1")


_ADD, _MUL, _ERF = by_number("add"), by_number("mul"), TABLE["erf"]


@composes("special.ndtr")
def _ndtr(input: Any) -> Any:
    error = apply(_ERF, apply(_MUL, input, math.sqrt(0.5)))
    return apply(_MUL, apply(_ADD, error, 1.0), 0.5)
