"""PyTorch's `torch._VF`: functions that its Python code wraps."""

from __future__ import annotations

from typing import Any

from ._ops.composites.unique import _integers
from ._ops.composites.unique import _unique2 as _distinct
from ._ops.composites.unique import unique_consecutive as _unique_consecutive


def unique_dim(
    input: Any, dim: int, sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the distinct slices along `dim`, with inverse and counts, asked for or not.

    So it is on PyTorch's CPUs, too.
    """
    return _all(_distinct(input, sorted, dim), True, True)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """Return the elements without repetitions, with inverse and counts (empty if not asked)."""
    found = _unique_consecutive(input, True, True, dim)
    return _all(found, return_inverse, return_counts)


def _unique2(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    """Return the distinct elements, with inverse and counts (empty if not asked)."""
    return _all(_distinct(input, sorted), return_inverse, return_counts)


def _all(found: tuple[Any, Any, Any], inverse: bool, counts: bool) -> tuple[Any, Any, Any]:
    def integers(x: Any, wanted: bool) -> Any:
        return x if wanted and hasattr(x, "_v") else _integers(x if wanted else [], found[0])

    return found[0], integers(found[1], inverse), integers(found[2], counts)
