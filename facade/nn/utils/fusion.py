"""PyTorch's `torch.nn.utils.fusion`: batch norms folded into the layers before them."""

from __future__ import annotations

import copy
from typing import Any

from ..._ops.creation.factories import ones_like, zeros_like
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip


def _statistics(bn: Any) -> tuple[Any, Any]:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return bn.running_mean, bn.running_var


def _check_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that does what both layers do in evaluation.

    Args:
      conv: the convolution, in evaluation mode.
      bn: the batch norm behind it, too.
      transpose: whether it is a transposed convolution.

    Raises:
      AssertionError: one of them trains, or the norm has no running statistics.
    """
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    mean, var = _statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Return weight and bias of a convolution and the batch norm behind it in one.

    Args:
      conv_w, conv_b: of the convolution; the bias may be None.
      bn_rm, bn_rv: the running mean and variance.
      bn_eps: what is added to the variance.
      bn_w, bn_b: of the norm, or None.
      transpose: whether it is a transposed convolution.
    """
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = zeros_like(bn_rm) if bn_b is None else bn_b
    factor = (bn_rv + bn_eps).rsqrt()
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (len(conv_w.shape) - 2)
    weight = (conv_w * (bn_w * factor).reshape(shape)).to(dtype=conv_w.dtype)
    bias = ((conv_b - bn_rm) * factor * bn_w + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that does what both layers do in evaluation.

    Args:
      linear: the layer, in evaluation mode.
      bn: the batch norm behind it, too.

    Raises:
      AssertionError: one of them trains, the norm has no running statistics, or they do not fit.
    """
    _check_eval(linear, bn)
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    mean, var = _statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return weight and bias of a linear layer and the batch norm behind it in one.

    Args:
      linear_w, linear_b: of the layer; the bias may be None.
      bn_rm, bn_rv: the running mean and variance.
      bn_eps: what is added to the variance.
      bn_w, bn_b: of the norm.
    """
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
