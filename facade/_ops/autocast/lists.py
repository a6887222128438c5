"""PyTorch's lists of the dtypes that autocast runs ops in, by device type.

A policy is a function `(lower, args, kwargs, tensors) -> dtype | None`: what the floating point
operands are cast to, None for as they are. Names are those of leafax's op table; where PyTorch
has a composite of listed ops (`tensordot`) or several entries for one of ours (`pad`), the
policy says which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

from leafax.functional.program.op import Op

from ..._core.dtypes import dtype, float32, of

Policy = Callable[[dtype, Any, Any, list[Any]], dtype | None]


def _lower(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    return lower


def _float32(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    return float32


def _widest(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    """Return float32 if any operand has it, the lower dtype if all have that."""
    dtypes = {of(t._v.aval.dtype) for t in tensors}
    if float32 in dtypes:
        return float32
    if dtypes - {lower}:
        raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return None


def _tensordot(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    """Return no dtype for a contraction to one number: it is a dot product, on no list."""
    a, b = (list(t._v.shape) for t in args[:2])
    dims = args[2] if len(args) > 2 else kwargs.get("dims", 2)
    summed = (range(-dims, 0), range(dims)) if isinstance(dims, int) else dims
    for shape, places in zip((a, b), summed, strict=True):
        for d in places:
            shape[d] = 1
    return None if prod(a) == prod(b) == 1 else lower


def _inner(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    shapes = [t._v.shape for t in args[:2]]
    return _tensordot(lower, args, {"dims": ([-1], [-1])}, tensors) if all(shapes) else None


def _power(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    n = args[1] if len(args) > 1 else kwargs["n"]
    return None if n in (-1, 0, 1) else lower


def _pad(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    """Of the kinds of padding these have entries: `reflection_pad3d` and constants do not."""
    pad = args[1] if len(args) > 1 else kwargs["pad"]
    mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
    dims = {"reflect": (1, 2), "replicate": (1, 2, 3)}.get(mode, ())
    return float32 if len(pad) // 2 in dims else None


def _without_dtype(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    """Return float32 for a reduction, unless it was given a dtype."""
    told = kwargs.get("dtype") or any(isinstance(a, dtype) for a in args)
    return None if told else float32


def _banned(lower: dtype, args: Any, kwargs: Any, tensors: list[Any]) -> dtype | None:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
        "In this case, combine the two layers using torch.nn.functional."
        "binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss.  "
        "binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
    )


def _names(text: str, policy: Policy) -> dict[str, Policy]:
    return dict.fromkeys(text.split(), policy)


_PRODUCTS = """
    matmul linalg.matmul mm bmm addmm addbmm baddbmm nn.functional.linear convolution conv1d conv2d
    conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d prelu linalg.vecdot
    linalg.multi_dot nn.functional.scaled_dot_product_attention
"""
_CPU: dict[str, Policy] = {
    **_names(_PRODUCTS, _lower),
    **_names("linalg.matrix_power matrix_power", _power),
    "inner": _inner,
    **_names(
        """
        nn.functional.avg_pool3d nn.functional.binary_cross_entropy grid_sampler_2d grid_sampler_3d
        nn.functional.grid_sample nn.functional._grid_sample3d
        polar prod quantile nanquantile stft cdist trace view_as_complex
        cholesky cholesky_inverse cholesky_solve inverse lu_solve ormqr pinverse geqrf qr svd
        triangular_solve nn.functional.max_pool3d nn.functional._max_unpool
        nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d
        nn.functional.adaptive_max_pool3d_with_indices nn.functional.mse_loss
        nn.functional.nll_loss nn.functional.nll_loss2d nn.functional.smooth_l1_loss
        nn.functional.huber_loss nn.functional.soft_margin_loss nn.functional.multi_margin_loss
        nn.functional._ctc_loss nn.functional.multilabel_margin_loss
        nn.functional.binary_cross_entropy_with_logits nn.functional._fractional_max_pool2d
        nn.functional._fractional_max_pool3d fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn
        fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft fft.ihfft
        linalg.cond linalg.matrix_rank linalg.solve linalg.cholesky linalg.svdvals linalg.eigvals
        linalg.eigvalsh linalg.inv linalg.householder_product linalg.tensorinv linalg.tensorsolve
        linalg.qr linalg.cholesky_ex linalg.svd linalg.eig linalg.eigh linalg.lstsq linalg.inv_ex
        """,
        _float32,
    ),
    "nn.functional.pad": _pad,
    **_names("stack cat concat concatenate index_copy", _widest),
}
_CUDA: dict[str, Policy] = {
    **_names(_PRODUCTS + " addmv addr mv", _lower),
    "einsum": _lower,
    **_names(
        """
        acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow
        nn.functional.softplus native_layer_norm nn.functional.layer_norm rms_norm
        native_group_norm cosine_similarity nn.functional.nll_loss nn.functional.nll_loss2d
        nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.mse_loss
        nn.functional.multilabel_margin_loss nn.functional.soft_margin_loss
        nn.functional.multi_margin_loss nn.functional.binary_cross_entropy_with_logits dist pdist
        cdist renorm logsumexp norm
        """,
        _float32,
    ),
    **_names(
        """
        prod softmax log_softmax cumprod cumsum linalg.vector_norm linalg.matrix_norm sum
        """,
        _without_dtype,
    ),
    **_names(
        """
        stack cat concat concatenate addcdiv addcmul atan2 cross dot vdot
        grid_sampler_2d grid_sampler_3d nn.functional.grid_sample
        nn.functional._grid_sample3d index_put tensordot scatter_add
        """,
        _widest,
    ),
    "nn.functional.binary_cross_entropy": _banned,
}
_BY_DEVICE = {"cpu": _CPU, "cuda": _CUDA}


@cache
def policy_of(device_type: str, op: Op) -> Policy | None:
    """Tell what autocast does with the operands of `op` on such devices; None: nothing."""
    return _BY_DEVICE.get(device_type, _CPU).get(op.qualified)
