"""Layers under the names and with the arguments of PyTorch's ATen functions: `torch.layer_norm`.

They differ from those of `nn.functional` in the order of their arguments, and check less. The ops
are the same.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE

from .._core.grad_modes import no_grad
from .._dispatch.record import apply
from .._ops.calls.functions import function, plain
from .._ops.calls.methods import inplace_method
from .._ops.writes.apply_inplace import check_inplace
from ..nn._functional import pooling
from ..nn._functional.norms import _with_statistics, group_normalized
from ..nn._functional.sparse import _renorm
from ..nn._functional.sparse import bilinear as bilinear

_F = "nn.functional."


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    """Standardize over the last dims, `normalized_shape`, then scale and shift."""
    shape = tuple(normalized_shape)
    return apply(TABLE[_F + "layer_norm"], input, shape, weight, bias, eps)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Standardize groups of channels of each sample."""
    return group_normalized(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Standardize each channel of `(N, C, ...)`; updates the running statistics in place."""
    stats, rest = (running_mean, running_var), (weight, bias, bool(training), momentum, eps)
    return _with_statistics("_native_batch_norm", input, stats, *rest)


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Standardize each channel of each sample; updates the running statistics in place."""
    stats, rest = (running_mean, running_var), (weight, bias, bool(use_input_stats), momentum, eps)
    return _with_statistics("_native_instance_norm", input, stats, *rest)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of `weight`; the row at `padding_idx`, if there is one, gets no gradient."""
    padding = padding_idx if 0 <= padding_idx < weight.shape[0] else None
    rest = (None, 2.0, bool(scale_grad_by_freq), bool(sparse))
    return apply(TABLE[_F + "embedding"], indices, weight, padding, *rest)


def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scale the rows of `input` that `indices` name down to `max_norm`, in place."""
    if input.dim() != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {input.dim()}-dimensional tensor for "
            "argument #1 'self' (while checking arguments for embedding_renorm_)"
        )
    name = scalar_name(indices._v.dtype)
    if name not in ("Long", "Int"):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{name}Tensor instead (while checking arguments for "
            "embedding_renorm_)"
        )
    check_inplace(input)
    with no_grad():
        _renorm(input.detach(), indices, max_norm, norm_type)
    return input


def max_pool1d_with_indices(
    input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Maxima over windows of the last dim, and where they are."""
    rest = (kernel_size, stride, padding, dilation, ceil_mode)
    return pooling.max_pool1d(input, *rest, return_indices=True)  # type: ignore[no-any-return]


def _max_pool(dims: int) -> Any:
    pool = getattr(pooling, f"max_pool{dims}d")

    def max_pool(
        input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dims}d"
    max_pool.__doc__ = f"Maxima over windows of the last {dims} dims."
    return max_pool


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
avg_pool1d = function(TABLE[_F + "avg_pool1d"])
adaptive_avg_pool1d = function(TABLE[_F + "adaptive_avg_pool1d"])


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """Maxima over as many windows as `output_size` says, and where they are."""
    found = pooling.adaptive_max_pool1d(input, output_size, return_indices=True)
    return found  # type: ignore[no-any-return]


def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """Return the input's values at the points of `grid`; modes are numbers.

    Args:
      input: `(N, C, H, W)` or `(N, C, D, H, W)`.
      grid: `(N, *out, 2 or 3)`, in [-1, 1].
      interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
      padding_mode: 0 zeros, 1 border, 2 reflection.
    """
    for name, mode in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if mode not in (0, 1, 2):  # PyTorch's kernel would read what is not there
            raise ValueError(f"grid_sampler(): expected {name} to be 0, 1 or 2, but got: {mode}")
    op = TABLE[f"grid_sampler_{3 if input.dim() == 5 else 2}d"]
    return apply(op, input, grid, interpolation_mode, padding_mode, bool(align_corners))


def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """Return the grid `(N, *spatial, dims)` of the affine maps `theta`."""
    return apply(TABLE[_F + "affine_grid"], theta, plain(size), bool(align_corners))


feature_dropout_ = inplace_method(TABLE["feature_dropout"])
feature_alpha_dropout_ = inplace_method(TABLE["feature_alpha_dropout"])
