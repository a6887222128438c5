"""Normalizations, distances and activations that PyTorch makes of other ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.dtypes import cpp_name
from leafax.functional.program.op import TABLE, Op

from ..._autograd.formulas.scalar_ops import plus
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..._ops.composites.registry import composes
from ..._rules.strides.channels_last import suggested
from ..._storage.strides import layout

_F = "nn.functional."
# `norm` of a dim; PyTorch's with more dims and a dtype is a composition of its own.
_NORM = Op(
    TABLE["norm"].fn, name="_norm_of_dim", backward="NormBackward1",
    saves={"self": "*", "result": "*"},
)  # fmt: skip


@composes("prelu")
def _prelu(input: Any, weight: Any) -> Any:
    rank = input.dim()
    if rank != weight.dim():
        shape = [weight.numel() if d == 1 else 1 for d in range(rank)]
        weight = weight.reshape(shape)
    return apply(TABLE["_prelu_kernel"], input, weight)


@composes("rms_norm")
def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    halves = input._v.dtype.itemsize == 2
    x = input.float() if halves else input
    if eps is None:
        eps = float(np.finfo(x._v.dtype).eps)
    dims = tuple(range(-len(normalized_shape), 0))
    y = x * plus(x.pow(2).mean(tuple(d % x.dim() for d in dims), True), eps).rsqrt()
    if weight is not None:
        if weight._v.dtype != input._v.dtype and input._v.dtype.kind != "c":
            warn_once(
                "Mismatch dtype between input and weight: input dtype = "
                f"{cpp_name(input._v.dtype)}, weight dtype = {cpp_name(weight._v.dtype)}, "
                "Cannot dispatch to fused implementation.",
                key="rms_norm",
            )
        y = y * weight
    if suggested(layout(y)) is None:
        y = y.contiguous()
    return y.to(input.dtype)


@composes(_F + "local_response_norm")
def _local_response_norm(input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    if not input.numel():
        return input
    square = input * input
    pads = (size // 2, (size - 1) // 2)
    if input.dim() == 3:
        padded = apply(TABLE[_F + "pad"], square.unsqueeze(1), (0, 0, *pads))
        mean = apply(TABLE[_F + "avg_pool2d"], padded, (size, 1), 1).squeeze(1)
    else:
        n, c, first = input.shape[:3]
        rest = input.numel() // (n * c * first)
        square = square.view(n, 1, c, first, rest)
        padded = apply(TABLE[_F + "pad"], square, (0, 0, 0, 0, *pads))
        mean = apply(TABLE[_F + "avg_pool3d"], padded, (size, 1, 1), 1).squeeze(1)
        mean = mean.view(input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)


@composes("pairwise_distance")
def _pairwise_distance(x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    return apply(_NORM, plus(x1 - x2, eps), p, -1, keepdim)


@composes(_F + "tanhshrink")
def _tanhshrink(input: Any) -> Any:
    return input - input.tanh()


@composes(_F + "softsign")
def _softsign(input: Any) -> Any:
    return input / (input.abs() + 1)
