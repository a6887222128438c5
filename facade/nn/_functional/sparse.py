"""Embedding, one-hot, attention and resizing: what is more than its op."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import cpp_name
from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.trie import local
from ..._core.vmap_checks import refuse_in_vmap
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._ops.calls.functions import plain
from ..._ops.creation.factories import zeros
from ..._ops.creation.generator import key as random_key
from ..._signatures.wrap_composites import parsed
from ..attention._causal_bias import CausalBias
from .activations import need_tensor

_F = "nn.functional."


@in_one_step
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of `weight` at the indices `input`; the row at `padding_idx` gets no gradient.

    With `max_norm`, rows that are used are scaled down in place to that norm first.
    """
    need_tensor("embedding", input, " (position 2)", "indices")
    if max_norm is not None:
        with no_grad():
            _renorm(weight.detach(), input, max_norm, norm_type)
    return apply(
        TABLE[_F + "embedding"], input, weight, padding_idx, None, norm_type, scale_grad_by_freq,
        bool(sparse),
    )  # fmt: skip


def _renorm(weight: Any, input: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `input` names, where longer than `max_norm`."""
    used = zeros(weight.shape[0], dtype=weight.dtype)
    used = used.index_fill(0, input.flatten(), 1.0) > 0
    norms = weight.norm(norm_type, 1)
    scale = (max_norm / (norms + 1e-7)).clamp(max=1.0)
    longer = used & (norms > max_norm)  # a norm of NaN is not
    weight.mul_(scale.masked_fill(longer.logical_not(), 1.0).unsqueeze(1))


def one_hot(input: Any, num_classes: int = -1) -> Any:
    """Rows of zeros with a 1 at each class; `num_classes=-1` takes what the data need.

    Finding that out runs the program.
    """
    op = TABLE[_F + "one_hot"]
    if num_classes < 1:
        refuse_in_vmap("one_hot", input)
    if num_classes == -1 and input.numel() and str(input.dtype) == "torch.int64":
        if int(input.min().item()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        num_classes = int(input.max().item()) + 1
    return apply(op, input, int(num_classes))


@in_one_step
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """`softmax(query @ key.mT * scale + mask) @ value` over the last two dims.

    Args:
      attn_mask: True where to attend, or a float tensor to be added to the scores.
      dropout_p: probability of dropping each weight; it is applied whenever it is not 0.
      is_causal: attend to earlier positions only.
      scale: `1 / sqrt(query.shape[-1])` if None.
      enable_gqa: let groups of query heads share the heads of keys and values.
    """
    if isinstance(attn_mask, CausalBias):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_causal = attn_mask.is_plain
        attn_mask = None if is_causal else attn_mask._materialize(query.device)
    if is_causal and attn_mask is not None and not _fused(query, key, value, attn_mask, dropout_p):
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if local.mode.grad and isinstance(attn_mask, Handle) and attn_mask._v.dtype == bool:
        attn_mask = attn_mask.clone()  # type: ignore[attr-defined]  # PyTorch saves a float mask
    rest = (attn_mask, dropout_p, bool(is_causal), scale, bool(enable_gqa))
    if dropout_p:
        op = TABLE[_F + "_attention_dropout"]
        return apply(op, random_key(None, query._v.device), query, key, value, *rest)
    return apply(TABLE[_F + "scaled_dot_product_attention"], query, key, value, *rest)


def _fused(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float) -> bool:
    """Tell whether PyTorch has a kernel for these on CPU, which takes a mask beside causality."""
    sizes = {t.shape[-1] for t in (query, key, value)}
    return (
        all(t.dim() == 4 and t.shape[2] for t in (query, key, value))
        and len(sizes) == 1
        and not dropout_p
        and not attn_mask.requires_grad
    )


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    """Resize the dims after `(N, C)`, to `size` or by `scale_factor`."""
    args = [_sizes(size), plain(scale_factor)]
    return apply(
        TABLE[_F + "interpolate"], input, *args, mode, align_corners, recompute_scale_factor,
        antialias,
    )  # fmt: skip


def _sizes(size: Any) -> Any:
    """Return a size as numbers, which may be given by tensors."""
    if isinstance(size, Handle):
        return int(size)  # type: ignore[call-overload]
    if not isinstance(size, (list, tuple)):
        return plain(size)
    for n in size:
        if not isinstance(n, (int, Handle, np.integer)):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                "Tuple[int, int, int], but got size with types "
                f"{[type(n) for n in size]}"
            )
    return plain(tuple(int(n) for n in size))


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """`interpolate`, by its old name."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode "nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode "bilinear" and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


@parsed
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """`input1 @ weight[k] @ input2` for each `k`, plus `bias`."""
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    said = {k: cpp_name(x.dtype.np) for k, x in given.items() if x is not None}
    if len(set(said.values())) > 1:
        listed = ", ".join(f"{k}: {name}" for k, name in said.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    for i, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got {a} and {b}"
            )
    left, right = input1.size(-1), input2.size(-1)
    for name, n, dim in (("input1", left, 1), ("input2", right, 2)):
        if n != weight.size(dim):
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {n} but expected "
                f"{weight.shape[dim]}"
            )
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.shape[0]} but expected {weight.shape[0]}"
        )
    out = apply(TABLE["einsum"], "bi,kij,bj->bk", (
        input1.reshape(-1, left), weight, input2.reshape(-1, right),
    ))  # fmt: skip
    out = out.reshape(*input1.shape[:-1], weight.shape[0])
    return out if bias is None else out + bias
