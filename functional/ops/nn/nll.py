"""Negative log likelihood, of which PyTorch has two nodes.

`reduction` is "none", "mean" or "sum". Deprecated `size_average` and `reduce` are the facade's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, scalar_name
from ...program.op import Fault, op
from .checks import need_float, reduction_name, size_list, wide

Array = jax.Array

F = "nn.functional"


@jax.custom_jvp
def _pick(x: Array, index: Array) -> Array:
    """Pick `x` at `index` along dim 1."""
    return jnp.take_along_axis(x, jnp.expand_dims(index, 1), axis=1, mode="clip").squeeze(1)


@_pick.defjvp
def _pick_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Any]) -> tuple[Array, Array]:
    # Transposed, the sum over a selection is a broadcast that XLA fuses into the softmax's
    # backward; the transpose of a gather is a scatter, which it does not.
    x, index = primals
    shape = (1, x.shape[1]) + (1,) * (x.ndim - 2)
    classes = jnp.arange(x.shape[1], dtype=index.dtype).reshape(shape)
    chosen = jnp.expand_dims(index, 1) == classes
    return _pick(x, index), jnp.where(chosen, tangents[0], jnp.zeros((), x.dtype)).sum(1)


def _nll(x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int) -> Array:
    """Compute the negative log likelihood of `(N, C, ...)` and `(N, ...)`."""
    if target.dtype not in (np.dtype("int64"), np.dtype("uint8")):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}"
        )
    need_float(x, "nll_loss_out_frame")
    if weight is not None and weight.dtype != x.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(weight.dtype)}"
        )
    dtype, x, zero = x.dtype, wide(x), jnp.zeros((), wide(x).dtype)
    target = target.astype(np.int64)
    kept = target != ignore_index
    index = jnp.where(kept, target, 0)
    if x.shape[1] == 0:
        picked = jnp.zeros(target.shape, x.dtype)
    else:
        picked = _pick(x, index)
    if weight is None:
        weights = kept.astype(x.dtype)
    else:
        weights = jax.lax.stop_gradient(wide(weight))
        weights = jnp.where(kept, jnp.take(weights, index, mode="clip"), zero)
    # Selection, not multiplication: an ignored place may hold infinity.
    loss = jnp.where(kept, -picked * weights, zero)
    if reduction == "mean":
        loss = loss.sum() / weights.sum()
    elif reduction == "sum":
        loss = loss.sum()
    return cast(loss, dtype)


def _nll_check(
    input: Array, target: Array, weight: Any = None, reduction: str = "mean",
    ignore_index: int = -100,
) -> list[Fault]:  # fmt: skip
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    target = target.astype(np.int64)
    bad = (target != ignore_index) & ((target < 0) | (target >= classes))
    return [Fault(bad, IndexError, "Target {value} is out of bounds.", target)]


def _same_batch(input: Array, target: Array) -> None:
    if input.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    batch = target.shape[0] if target.ndim else 0
    if input.ndim != 1 and input.shape[0] != batch:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({batch})."
        )


@op(
    namespace=F, method=False, check=_nll_check,
    saves={"self": "self", "target": "self", "weight": "self"},
)  # fmt: skip
def nll_loss(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean",
    ignore_index: int = -100,
) -> Array:  # fmt: skip
    """Take minus the input at the target classes: `(C,)` with `()`, or `(N, C)` with `(N,)`.

    The mean is weighted; with every target ignored it is NaN.
    """
    reduction = reduction_name(None, None, reduction)
    _same_batch(input, target)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}"
        )
    if weight is not None and weight.shape != input.shape[-1:]:
        raise RuntimeError(
            f"weight tensor should be defined either for all {input.shape[-1]} classes or no "
            f"classes but got weight tensor of shape: {size_list(weight.shape)}"
        )
    if input.ndim == 1:
        loss = _nll(input[None], target.reshape(1), weight, reduction, ignore_index)
        return loss.reshape(())
    return _nll(input, target, weight, reduction, ignore_index)


@op(
    namespace=F, backward="NllLoss2DBackward0", method=False, check=_nll_check,
    saves={"self": "self", "target": "self", "weight": "self"},
)  # fmt: skip
def nll_loss2d(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean",
    ignore_index: int = -100,
) -> Array:  # fmt: skip
    """Take minus the input at the target classes: `(N, C, d1, ...)` with `(N, d1, ...)`."""
    reduction = reduction_name(None, None, reduction)
    _same_batch(input, target)
    if input.ndim != 4:
        out = input.shape[:1] + input.shape[2:]
        if target.shape[1:] != input.shape[2:]:
            raise RuntimeError(
                f"Expected target size {size_list(out)}, got {size_list(target.shape)}"
            )
    if target.ndim != input.ndim - 1:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of "
            f"dimension: {target.ndim}"
        )
    if weight is not None and weight.size != input.shape[1]:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if target.shape[1:] != input.shape[2:]:
        raise RuntimeError(
            f"size mismatch (got input: {size_list(input.shape)} , target: "
            f"{size_list(target.shape)}"
        )
    return _nll(input, target, weight, reduction, ignore_index)
