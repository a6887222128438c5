"""Ops without a derivative in PyTorch: what a backward through them raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.program.dtypes import is_differentiable, scalar_name
from leafax.functional.program.program import Slot

from .._core.trie import State, Value
from .._core.warn_once import drops_imaginary
from .error_texts import COMPLEX_FOR_REAL, OVERLAPS_ITSELF, invalid_gradient
from .missing_formulas import lacks_inplace_formula, leads_nowhere
from .node_names import node_name
from .strides.layouts import followed, laid

_PARTLY = {
    ("igamma", "input"): "igamma: input", ("igammac", "input"): "igammac: input",
    ("special.zeta", "input"): "zeta",
}  # fmt: skip


# These have formulas for real numbers alone; by the names that PyTorch says.
_REAL = {
    name: name
    for name in ("nan_to_num", "silu", "view_as_complex_copy", "select_scatter", "slice_scatter")
}
_REAL |= {name: f"_{name}" for name in ("softmax", "log_softmax")}


def refuse_complex(op: Any, avals: Any) -> None:
    """Raise where PyTorch will not record an op because its result is complex."""
    if op is None or op.overwrites:  # PyTorch does not ask where it writes in place
        return
    said = _REAL.get(op.name)
    if said is not None and avals[0].dtype.kind == "c":
        raise RuntimeError(
            f"{said} does not support automatic differentiation for outputs with complex dtype."
        )


# They take the dtype of their result.
_ASKED = frozenset({"sum", "prod", "cumsum", "cumprod", "nansum"})


def refuse_integers(op: Any, avals: Any, inputs: Sequence[Value]) -> None:
    """Raise where PyTorch would record an op whose result has another dtype than gradients have."""
    if op is not None and op.name in _ASKED and not is_differentiable(avals[0].dtype):
        drops_imaginary(inputs[0].dtype, avals[0].dtype, inputs[0].numel)
        raise RuntimeError(f"Autograd not support dtype: {scalar_name(avals[0].dtype)}")


# Operands that PyTorch's formulas leave out, and what PyTorch calls the function.
_FIXED = {
    "nll_loss": ("nll_loss_forward", ("weight",)),
    "nll_loss2d": ("nll_loss2d_forward", ("weight",)),
    "_native_batch_norm": ("native_batch_norm", ("running_mean", "running_var")),
    "_native_instance_norm": ("native_batch_norm", ("running_mean", "running_var")),
    "soft_margin_loss": ("soft_margin_loss", ("target",)),
    "multi_margin_loss": ("multi_margin_loss", ("weight",)),
    "binary_cross_entropy": ("binary_cross_entropy", ("weight",)),
    "binary_cross_entropy_with_logits": (
        "binary_cross_entropy_with_logits", ("weight", "pos_weight"),
    ),
}  # fmt: skip


def refuse_arguments(call: Any, inputs: Sequence[Value]) -> None:
    """Raise if an operand requires grad that PyTorch's op is not differentiable by."""
    op = getattr(call, "op", None)
    if op is None or op.name not in _FIXED or op.namespace != "nn.functional":
        return
    name, fixed = _FIXED[op.name]
    given = call.arguments
    for argument in fixed:
        a = given.get(argument)
        if isinstance(a, Slot) and inputs[a.index].requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument "
                f"'{argument}'. This input cannot have requires_grad True."
            )


# Of these the gradient stays complex where the result is, and PyTorch's engine refuses that.
_LEFT_COMPLEX = frozenset({"sum", "mean", "prod", "cumprod", "where"})


def refuse_parts(op: Any) -> None:
    """Raise if PyTorch gives a real operand of this op a complex gradient."""
    if op.name in _LEFT_COMPLEX:
        raise RuntimeError(COMPLEX_FOR_REAL)


def refuse(state: Any, wanted: tuple[int, ...], name: str = "") -> None:
    """Raise if the gradient for one of the `wanted` operands is not implemented.

    Args:
      state: a step, or what tells its `call`, its `operands` and its `value`.
      name: its node's name; a step's own by default.
    """
    op = getattr(state.call, "op", None)
    if op is None:
        return
    if state.value.dtype.kind == "c" and any(state.operands[k].dtype.kind != "c" for k in wanted):
        refuse_parts(op)
    if op.backward == "CopySlices" and (1 if op.random else 0) in wanted:
        _refuse_repeating(state)
    if op.name in _BY_INDEX:
        _refuse_short_index(state, wanted, name)
    if op.name == "qr":
        refuse_qr(op, state.call.args, state.call.kwargs, state.operands[0].shape)
    if leads_nowhere(state):
        said = f"aten::{op.name}{'_' if op.overwrites else ''}"
        said = op.name if op.name == "set_" else said
        raise RuntimeError(f"derivative for {said} is not implemented")
    what = f"inplace version of {op.name}" if lacks_inplace_formula(state) else None
    for parameter, a in zip(op.parameters, state.call.args, strict=False):
        if isinstance(a, Slot) and a.index in wanted:
            what = _PARTLY.get((op.qualified, parameter), what)
    if what is not None:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")


# The gradient of `src` has the shape of `index`, and PyTorch's engine takes no smaller one.
_BY_INDEX = frozenset({"scatter", "scatter_add", "scatter_reduce"})


def _refuse_short_index(state: Any, wanted: tuple[int, ...], name: str) -> None:
    given = state.call.arguments
    src = given.get("src")
    if not isinstance(src, Slot) or src.index not in wanted:
        return
    if given.get("reduce") not in (None, "sum", "mean"):  # others are broadcast
        return
    have, want = (state.operands[a.index].shape for a in (given["index"], src))
    if have != want:
        raise RuntimeError(invalid_gradient(name or node_name(state), 1, have, want))


def refuse_qr(op: Any, args: Any, kwargs: dict[str, Any], shape: Any) -> None:
    """Raise if PyTorch has no derivative of `qr` in this mode, of matrices of this shape."""
    given = dict(zip(op.parameters, args, strict=False)) | kwargs
    mode = given.get("mode", "reduced" if given.get("some", True) else "complete")
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and shape[-2] > shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )


def _refuse_repeating(state: State) -> None:
    """Raise where PyTorch would write the gradient back through a view that repeats elements."""
    op = state.call.op
    found = followed(op, laid(state.operands[1 if op.random else 0]), state.call.args, {})
    if found is not None and any(
        n > 1 and s == 0 for n, s in zip(found.shape, found.strides, strict=True)
    ):
        raise RuntimeError(OVERLAPS_ITSELF)
