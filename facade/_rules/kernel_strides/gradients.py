"""Strides of gradients: where they lie in memory as PyTorch's formulas have it.

Formulas that only view the incoming gradient are recorded as the views that they are where
somebody can look (`_autograd/formulas`). Here are the others: most are elementwise in the
incoming gradient and in what the op saved, and lie as elementwise results do.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.ops.shape.strides import Layout

from ..reads_of_gradients import reads
from ..strides.channels_last import ELSEWHERE, ON_IMAGES, in_format_of
from ..strides.layouts import Strides, dense, elementwise, iterated, laid
from ..strides.of_results import OF_CALL

# Their gradients are elementwise in their input: a mask, or what was reduced spread out again.
_SPREADING = frozenset({
    "amax", "amin", "prod", "norm", "linalg.vector_norm", "std", "var", "logsumexp", "nansum",
    "dist", "nn.functional.gelu", "nn.functional.silu", "roll",
})  # fmt: skip


def gradient_strides(call: VjpCall, inputs: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    """Lay out the results of a gradient's call, None if all are row-major.

    Args:
      inputs: the values that it takes: operands of the op, then the gradients of its results.
    """
    op = getattr(call.call, "op", None)
    if op is None or all(v.strides is None for v in inputs):
        return None
    present = call.n - len(call.missing)
    operands, grads = inputs[:present], inputs[present:]
    if op.backward == "CopySlices":  # a copy that lies as the base does
        return _like_base(call, operands, avals)
    if op.name in ("mm", "addmm"):
        return tuple(_of_product(call, inputs, k) for k in call.wanted)
    if op.name in ON_IMAGES and op.name not in ELSEWHERE:
        absent = {i for i, _ in call.missing}
        by_gradient = op.name == "interpolate" or 0 in absent
        seen = [laid(v) for v in (grads if by_gradient else operands)]
        return in_format_of(op, seen, avals)
    if op.name == "sgn" or not (op.qualified in _SPREADING or elementwise(op, operands)):
        return None
    read = reads(call, tuple(v.aval for v in inputs))
    taken = [laid(v) for v in grads]
    taken += [laid(v) for k, v in enumerate(operands) if k in read]
    return tuple(_elementwise(tuple(a.shape), taken) for a in avals)


OF_CALL[VjpCall] = gradient_strides


def _elementwise(shape: tuple[int, ...], operands: list[Layout]) -> Strides:
    if any(len(x.shape) > len(shape) for x in operands):
        return None  # it was summed to this shape
    fit = []
    for x in operands:
        lead = len(shape) - len(x.shape)
        pairs = list(zip(x.shape, shape[lead:], strict=True))
        if any(n not in (1, m) for n, m in pairs):
            if any(m not in (1, n) for n, m in pairs):
                continue  # the gradient of what was reduced
            return None
        fit.append(x)
    return iterated(shape, fit) if fit else None


def _like_base(call: VjpCall, operands: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    if call.missing or call.wanted[:1] != (0,) or not dense(laid(operands[0])):
        return None
    return (operands[0].strides, *[None] * (len(avals) - 1))


def _of_product(call: VjpCall, inputs: list[Any], k: int) -> Strides:
    """Lay out the gradient of a matrix: by columns if the matrix lies so."""
    if call.missing or len(inputs[k].shape) != 2:
        return None
    rows, columns = inputs[k].shape
    return (1, rows) if inputs[k].strides == (1, rows) and rows > 1 else None
