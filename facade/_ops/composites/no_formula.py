"""Results of functions that PyTorch has no derivative of, where NumPy computed them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._dispatch.tangents import has_tangent


def of(name: str, made: Any, *given: Any) -> Any:
    """`made` by ATen's function of this name, with its history: a backward through it raises.

    Raises:
      NotImplementedError: if a tensor that was given has a tangent.
    """
    tensors = [x for x in given if isinstance(x, Handle)]
    if not any(x._tracked or has_tangent(x) for x in tensors):  # type: ignore[attr-defined]
        return made
    return apply(_op(name), made, *tensors)


def _made(made: Any, *given: Any) -> Any:
    return jnp.copy(made)


@cache
def _op(name: str) -> Op:
    return Op(
        _made, name=name, backward="NotImplemented",
        no_gradient=(RuntimeError, f"derivative for aten::{name} is not implemented"),
    )  # fmt: skip
