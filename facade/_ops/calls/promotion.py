"""Functions that tell what dtypes promote to."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafax.functional.program import dtypes
from leafax.functional.program.dtypes import category, default_float

from ..._core.dtypes import as_dtype, dtype, of
from ..._core.handle import Handle
from .functions import plain


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype that two dtypes promote to."""
    first = as_dtype("promote_types", type1, "'type1' (position 1)")
    second = as_dtype("promote_types", type2, "'type2' (position 2)")
    return of(dtypes.promote_types(first.np, second.np))


class _Fact(NamedTuple):
    """Hold all that promotion asks of a tensor."""

    dtype: Any
    ndim: int


_OF_RESULT_TYPE = frozenset({"tensor", "other", "scalar", "scalar1", "scalar2"})


def result_type(*args: Any, **kwargs: Any) -> dtype:
    """Return the dtype of an arithmetic op on two tensors or numbers.

    PyTorch has names for them by their kinds: `tensor, other`, `scalar, tensor`,
    `scalar1, scalar2`.
    """
    for name in kwargs:
        if name not in _OF_RESULT_TYPE:
            raise TypeError(f"result_type() got an unexpected keyword argument '{name}'")
    given = (*args, *kwargs.values())
    if len(given) != 2:
        raise TypeError(f"result_type() takes 2 positional arguments but {len(given)} were given")

    facts = [
        _Fact(t._v.dtype, len(t._v.shape)) if isinstance(t, Handle) else plain(t) for t in given
    ]
    return of(dtypes.result_type(*facts, default_float=default_float()))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Tell whether PyTorch's promotion rules allow writing `from_` into `to`."""
    source = as_dtype("can_cast", from_, "'from_' (position 1)")
    return category(source.np) <= category(as_dtype("can_cast", to, "'to' (position 2)").np)
