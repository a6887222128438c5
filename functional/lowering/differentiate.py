"""The one `jax.vjp` that all gradients come from, with PyTorch's convention for complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.dtypes import float0
from jax.interpreters.ad import Zero

from ..program.dtypes import category, is_differentiable


def conj(x: Any) -> Any:
    """Conjugate a complex array; return others as they are."""
    return jnp.conj(x) if category(x.dtype) == 3 else x


def conj_positive_zero(x: Any) -> Any:
    """Conjugate, but to 0 where that gives -0: PyTorch's formulas conjugate operands."""
    if category(x.dtype) != 3:
        return x
    return jax.lax.complex(jnp.real(x), 0 - jnp.imag(x))


def _unchanged(x: Any) -> Any:
    return x


_SIGN_OPS = frozenset({"neg", "negative", "positive", "add", "sub", "subtract", "rsub"})
_PLACE_ARGUMENTS = frozenset({"index", "indices", "condition", "mask"})


def _moves_numbers(call: Any) -> bool:
    """Return True if a call's gradient is its cotangent's numbers, summed, in other places."""
    op = getattr(call, "op", None)
    if op is None:
        return False
    if op.name in _SIGN_OPS:  # `alpha` is a factor
        return len(call.args) <= 2 and not call.kwargs
    if op.view:
        return True
    return op.moves if not op.saves else set(op.saves) <= _PLACE_ARGUMENTS


def differentiate(
    evaluate: Callable[..., tuple[Any, ...]], arrays: Sequence[Any], wanted: Sequence[int]
) -> tuple[tuple[Any, ...], Pullback]:
    """Evaluate at `arrays`, and return the outputs and their pullback to the `wanted` inputs.

    The pullback takes one cotangent an output (None for zero) and follows PyTorch's convention
    for complex numbers, which is the conjugate of JAX's.
    """
    box: dict[str, Any] = {}

    def inner(*moving: Any) -> Any:
        full = list(arrays)
        for i, x in zip(wanted, moving, strict=True):
            full[i] = x
        outs = evaluate(*full)
        box["floats"] = [k for k, o in enumerate(outs) if is_differentiable(o.dtype)]
        box["avals"] = [(o.shape, o.dtype) for o in outs]
        floats = set(box["floats"])
        rest = tuple(o for k, o in enumerate(outs) if k not in floats)
        return tuple(outs[k] for k in box["floats"]), rest

    floats, pull, rest = jax.vjp(inner, *[arrays[i] for i in wanted], has_aux=True)
    outs: list[Any] = []
    it_float, it_rest = iter(floats), iter(rest)
    for k in range(len(box["avals"])):
        outs.append(next(it_float) if k in box["floats"] else next(it_rest))
    kinds = {category(box["avals"][k][1]) for k in box["floats"]}
    kinds |= {category(arrays[i].dtype) for i in wanted}
    call = getattr(evaluate, "__self__", None)
    moves = kinds == {3} and _moves_numbers(call)
    meta = PullMeta(tuple(box["floats"]), tuple(box["avals"]), moves, may_be_nonfinite(call))
    return tuple(outs), Pullback(pull, meta)


def may_be_nonfinite(call: Any) -> bool:
    """Return True if zeros for an output without a gradient could become NaN.

    They are left out then. Not of every call: JAX does not take that for all that a user's
    function may hold (a rematerialised `scan`).
    """
    op = getattr(call, "op", None)
    return op is not None and bool(op.steep)


class PullMeta(NamedTuple):
    """Facts of a pullback that its closure does not tell."""

    floats: tuple[int, ...]  # which outputs are differentiable
    avals: tuple[tuple[tuple[int, ...], Any], ...]  # shape and dtype of every output
    moves: bool  # complex gradients change places and signs only: no need to conjugate them
    steep: bool  # no gradient is not the same as zeros


class Pullback:
    """A `jax.vjp` closure that takes PyTorch's cotangents: None for zero, complex conjugated."""

    __slots__ = ("pull", "meta")

    def __init__(self, pull: Any, meta: PullMeta) -> None:
        self.pull, self.meta = pull, meta

    def __call__(self, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        to_jax, to_torch = (_unchanged, _unchanged)
        if not self.meta.moves:
            to_jax, to_torch = (conj, conj_positive_zero)
        filled = []
        for k in self.meta.floats:
            shape, dtype = self.meta.avals[k]
            if cotangents[k] is not None:
                # What was saved may be of another dtype than when the gradient was asked for.
                filled.append(to_jax(cotangents[k]).astype(dtype))
            elif self.meta.steep:
                filled.append(Zero(jax.core.ShapedArray(shape, dtype)))
            else:
                filled.append(jnp.zeros(shape, dtype))
        grads = self.pull(tuple(filled))
        return tuple(g if g.dtype == float0 else to_torch(g) for g in grads)
