"""`linalg.lstsq` by the drivers that tell ranks: without residuals where a matrix lacks some."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.program.op import TABLE, Op

from ..._core.trie import local
from ..._dispatch.conj_neg_bits import held
from ..._dispatch.record import apply
from ..calls.functions import uniform
from ..writes.write_out import check_out, write_out

_LSTSQ = TABLE["linalg.lstsq"]


def _without(
    input: jax.Array, b: jax.Array, rcond: Any = None, *, driver: str | None = None
) -> Any:
    found = _LSTSQ.fn(input, b, rcond, driver=driver)
    return found._replace(residuals=jnp.zeros(0, found.residuals.dtype))


_WITHOUT = Op(
    _without, name="lstsq", namespace="linalg", method=False, backward=_LSTSQ.backward,
    saves=_LSTSQ.saves, residuals=True, constant_outputs=_LSTSQ.constant_outputs,
)  # fmt: skip


def ranked(lstsq: Callable[..., Any]) -> Callable[..., Any]:
    """`linalg.lstsq`, which gives no residuals unless all matrices are of full rank.

    Whether they are only the data can tell, so where it matters this runs the program: only of
    tall matrices, by "gelsd" and "gelss".
    """

    @functools.wraps(lstsq)
    def fn(*args: Any, driver: Any = None, out: Any = None, **kwargs: Any) -> Any:
        if driver not in ("gelsd", "gelss") or local.vmap is not None:
            return lstsq(*args, driver=driver, out=out, **kwargs)
        if out is not None:
            check_out(_LSTSQ, out, (*args, *kwargs.values()))
        found = lstsq(*args, driver=driver, **kwargs)
        args, kwargs = uniform(_LSTSQ, args, kwargs)
        columns = (args[0] if args else kwargs["input"]).shape[-1]
        if found.residuals.numel() and (held(found.rank) < columns).any():
            found = apply(_WITHOUT, *args, driver=driver, **kwargs)
        return found if out is None else write_out(_LSTSQ, found, out, (*args, *kwargs.values()))

    return fn
