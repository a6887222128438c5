"""`x[i] = value` where nobody shares `x` and no gradient flows: one node, whatever `i` is.

Elsewhere it is a view that is written to. That takes several nodes, and a loop that fills a tensor
(a replay buffer, the returns of an episode) is made of little else.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from leafax.functional.program.dtypes import cast
from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._core.transforms_running import active
from ..._core.trie import local
from ..._tracing.jax_transforms import refuse_write
from .apply_inplace import apply_inplace


def _put(input: Any, places: tuple[Any, ...], value: Any) -> Any:
    rest = input.shape[len(places) :]
    part = jnp.broadcast_to(cast(value, input.dtype), rest)
    return lax.dynamic_update_slice(
        input, part.reshape((1,) * len(places) + rest), (*places, *(0 for _ in rest))
    )


def _at_one(input: Any, index: Any, value: Any) -> Any:
    return _put(input, (index,), value)


def _at_two(input: Any, row: Any, column: Any, value: Any) -> Any:
    return _put(input, (row, column), value)


# Indices and numbers that change from call to call are inputs of the program.
_OPS = (
    Op(_at_one, name="put_at", differentiable=False, numbers=("index", "value")),
    Op(_at_two, name="put_at", differentiable=False, numbers=("row", "column", "value")),
)


def put_plainly(x: Any, index: Any, value: Any) -> bool:
    """Write `value`, a number or tensor, at an int or two of them.

    Returns whether it was as simple as that; else nothing has happened.
    """
    kind = type(index)
    if kind is int:
        places = (index,)
    elif kind is tuple and len(index) == 2 and type(index[0]) is type(index[1]) is int:
        places = index
    else:
        return False
    v, mode = x._v, local.mode
    if x._shares or v.requires_grad or v.inference or v.strides is not None or x._stale is not None:
        return False
    if (
        mode.dual
        or mode.hooks
        or mode.inference
        or mode.counted
        or active.depth
        or local.autograd.guard
    ):
        return False
    shape = v.shape
    if len(shape) < len(places):
        return False
    for k, n in zip(places, shape, strict=False):
        if not -n <= k < n:
            return False
    if isinstance(value, Handle):
        held: Any = value._v
        if value._shares or held.requires_grad or value is x or value._stale is not None:
            return False
        if held.dtype != v.dtype or held.shape and held.shape != shape[len(places) :]:
            return False
    elif type(value) is not int and type(value) is not float:
        return False
    refuse_write(x)
    at = [k + n if k < 0 else k for k, n in zip(places, shape, strict=False)]
    apply_inplace(_OPS[len(at) - 1], x, *at, value)
    return True
