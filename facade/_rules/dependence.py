"""Dependence of PyTorch's gradients on what they read: where differentiating one again leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.lowering.jvp import read_inputs

from .node_names import COMPARISONS
from .reads_of_gradients import reads, takes_input
from .saved_columns import argument, slots_of


def depends(call: Any, values: Sequence[Any], cts: list[Any]) -> bool:
    """Tell whether a gradient of `values` (operands, then cotangents) reads what requires grad."""
    if is_zero(call, values):
        return False
    if any(c._tracked for c in cts):
        return True
    op = getattr(getattr(call, "call", None), "op", None)
    if op is not None and op.backward in WHOLE:
        slots = slots_of(call.call)
        names = {*op.saves, *op.parameters[: "self" in op.saves]}
        saved = {i for name in names for i in slots.get(name, ())}
        present = [i for i in range(call.n) if i not in dict(call.missing)]
        return any(v.requires_grad and i in saved for i, v in zip(present, values, strict=False))
    if takes_input(call):
        return any(v.requires_grad for v in values)
    if linear(call):
        return False
    read = reads(call, tuple(v.aval for v in values))
    return any(values[i].requires_grad for i in read)


# PyTorch's gradients of these are one node for all operands.
WHOLE = frozenset({
    "ConvolutionBackward0", "NativeBatchNormBackward0", "NativeLayerNormBackward0",
    "PreluKernelBackward0",
})  # fmt: skip


# What tells where, and takes no part in differentiating again.
_PLACES = frozenset({"mask", "condition", "index", "indices"})


# Their formulas make of what they save masks, which have no derivative.
_MASKED = frozenset({
    "amax", "amin", "aminmax", "max", "min", "median", "nanmedian", "cummax", "cummin", "nansum",
    "nanmean", "clamp", "clamp_min", "clamp_max", "fmax", "fmin", "nan_to_num", "embedding",
    "hinge_embedding_loss", "frexp", "nextafter",
})  # fmt: skip
_COMPOSED = frozenset({"tanhshrink", "rrelu"})  # of ops that save what they are given
_SHAPED = frozenset({"gather", "take"})  # these save their input for its shape


# The gradients of these are zeros for real numbers, whatever arrives.
_STEPS = frozenset({"round", "floor", "ceil", "trunc", "fix", "sign", "bernoulli", "sgn", "angle"})


def is_zero(call: Any, values: Sequence[Any]) -> bool:
    """Tell whether PyTorch's gradient is new zeros, which depend on nothing."""
    op = getattr(getattr(call, "call", None), "op", None)
    if op is None or op.backward == "CopySlices":
        return False
    if op.overwrites and op.name == "copy":
        return bool(call.wanted == (0,))
    if op.overwrites and op.name in COMPARISONS:
        return True
    if op.name == "div" and argument(call.call, "rounding_mode") is not None:
        return True
    if op.name == "copysign" and call.wanted == (1,):
        return True
    return op.name in _STEPS and not any(v.dtype.kind == "c" for v in values)


def linear(call: Any) -> bool:
    """Tell whether PyTorch's gradient reads no values: of what it saves, at most places."""
    op = getattr(getattr(call, "call", None), "op", None)
    if op is None or op.namespace in ("opaque", "linalg") or op.name in _COMPOSED:
        return False
    if op.name in ("std_mean", "var_mean") and call.given == (1,):  # the gradient of the mean
        return True
    if op.name in ("scatter_reduce", "index_reduce"):
        return argument(call.call, "reduce") in ("amax", "amin")
    return _PLACES.issuperset(op.saves) or op.name in _SHAPED or op.name in _MASKED


def reached(state: Any, wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of the wanted operands of an op on JAX functions that outputs come from.

    A function takes all the parameters of a model, also where it uses few. The gradient of the
    others is None then, as in PyTorch, not zero: an optimizer leaves them alone.
    """
    edges = getattr(state.call.op.fn, "edges", None)  # those of a mapped function are known
    if edges is not None:
        read = frozenset().union(*[edges[k] for k in given])
    else:
        avals = tuple([v.aval for v in state.operands])
        read = read_inputs(state.call, avals, given)
    return tuple([k for k in wanted if k in read])
