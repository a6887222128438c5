"""The dtype that Python floats become."""

from __future__ import annotations

from leafax.functional.program.dtypes import default_float, set_default_float

from .dtypes import dtype, of
from .trie import local


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become."""
    return of(default_float())


def set_default_dtype(d: dtype) -> None:
    """Set the dtype that Python floats become, a floating point one."""
    if not isinstance(d, dtype):
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_float(d.np)
    local.set_mode(local.mode)
