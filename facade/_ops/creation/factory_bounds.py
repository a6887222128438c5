"""The numbers that factories take: bounds, steps and counts."""

from __future__ import annotations

import operator
from typing import Any

from leafax.functional.program.number_fits import need_int64

from ..._core.handle import Handle


def _scalars(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any, int]:
    """Return the ends and the number of steps of `linspace` and `logspace`."""
    dims = [x.dim() if isinstance(x, Handle) else None for x in (start, end)]
    if any(dims):
        told = [
            f"{which} with {n} dimension(s)"
            for which, n in zip(("start", "end"), dims, strict=True)
            if n is not None
        ]
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got "
            f"{' and '.join(told)}."
        )
    return _scalar(start), _scalar(end), operator.index(None if steps is True else steps)  # type: ignore[arg-type]


def _scalar(x: Any) -> Any:
    number = x.item() if isinstance(x, Handle) else x  # type: ignore[attr-defined]
    return number if isinstance(number, complex) else float(number)


def _index(x: Any) -> int:
    """Return an int of 64 bits, for which a tensor may stand."""
    found = operator.index(x)
    need_int64(found)
    return found
