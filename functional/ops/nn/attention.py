"""Scaled dot product attention."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, cpp_name, is_floating, scalar_name
from ...program.op import op
from .checks import broadcast, size_list, wide_dtype
from .dropout import dropped

Array = jax.Array

F = "nn.functional"


def _errors(query: Array, key: Array, value: Array, mask: Array | None, dropout_p: Any) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{cpp_name(query.dtype)} key.dtype: {cpp_name(key.dtype)} and value.dtype: "
            f"{cpp_name(value.dtype)} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if mask is not None and mask.dtype not in (np.dtype(bool), np.dtype("float32"), query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {cpp_name(mask.dtype)} and  query.dtype: {cpp_name(query.dtype)} "
            "instead."
        )
    if not is_floating(query.dtype):
        raise RuntimeError(f"expected scalar type Float but found {scalar_name(query.dtype)}")
    if isinstance(dropout_p, (int, float)) and not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")


def _product(a: Array, b: Array, axis: int, out: np.dtype) -> Array:
    """Compute `a @ b`, or `a @ b.mT` with axis -1, with leading dims broadcast."""
    batch = broadcast(
        jax.ShapeDtypeStruct(a.shape[:-2], a.dtype), jax.ShapeDtypeStruct(b.shape[:-2], b.dtype)
    )
    if a.shape[-1] != b.shape[axis]:
        inner = list(b.shape[-2:]) if axis == -2 else [b.shape[-1], b.shape[-2]]
        size = math.prod(batch)
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"{size_list((size, a.shape[-1]))} but got: {size_list((size, inner[0]))}."
        )
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    lead = tuple(range(len(batch)))
    dims = (((a.ndim - 1,), (b.ndim + axis,)), (lead, lead))
    return jax.lax.dot_general(a, b, dims, preferred_element_type=out)


def _probabilities(
    query: Array, key: Array, mask: Array | None, is_causal: bool, scale: float | None
) -> Array:
    """Apply softmax to the scaled scores, float32 for halves; 0 if nothing is attended to."""
    dtype = wide_dtype(query.dtype)
    scores = _product(query, key, -1, dtype)
    # Of no features there are scores of 0, whatever they are scaled by.
    scores = scores * (scale if scale is not None else max(query.shape[-1], 1) ** -0.5)
    low = jnp.full((), -jnp.inf, dtype)
    if is_causal:
        rows = jnp.arange(query.shape[-2])[:, None]
        scores = jnp.where(rows >= jnp.arange(key.shape[-2]), scores, low)
    if mask is None:
        return jax.nn.softmax(scores, axis=-1) if scores.size else scores
    shape = broadcast(scores, mask)
    if mask.dtype == np.dtype(bool):
        scores = jnp.where(mask, scores, low)
    else:
        scores = jnp.broadcast_to(scores, shape) + cast(mask, dtype)
    if not scores.size:
        return scores
    top = jax.lax.stop_gradient(scores.max(-1, keepdims=True))
    weights = jnp.exp(scores - jnp.where(top == low, jnp.zeros((), dtype), top))
    total = weights.sum(-1, keepdims=True)
    return weights / jnp.where(total == 0, jnp.ones((), dtype), total)


def _grouped(query: Array, key: Array, value: Array, enable_gqa: bool) -> tuple[Array, Array]:
    """Repeat keys and values to as many heads as there are queries."""
    if not enable_gqa:
        return key, value
    heads = [x.shape[-3] for x in (query, key, value)] if query.ndim > 2 else [1, 1, 1]
    if heads[0] % heads[1] or heads[0] % heads[2]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    if heads[0] != heads[1]:
        key = jnp.repeat(key, heads[0] // heads[1], axis=-3)
    if heads[0] != heads[2]:
        value = jnp.repeat(value, heads[0] // heads[2], axis=-3)
    return key, value


_SAVES = {"query": "*", "key": "*", "value": "*", "attn_mask": "*", "result": "*"}


@op(
    namespace=F, method=False, residuals=True, saves=_SAVES,
    backward="ScaledDotProductFlashAttentionForCpuBackward0",
)  # fmt: skip
def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, attn_mask: Array | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:  # fmt: skip
    """Attend over the last two dims; with dropout use `_attention_dropout`, which takes a key."""
    _errors(query, key, value, attn_mask, dropout_p)
    if dropout_p:
        raise ValueError("dropout_p > 0 needs the random op `_attention_dropout`")
    key, value = _grouped(query, key, value, enable_gqa)
    weights = _probabilities(query, key, attn_mask, is_causal, scale)
    return _product(cast(weights, value.dtype), value, -2, value.dtype)


@op(
    name="_attention_dropout", namespace=F, method=False, residuals=True, random=True,
    backward="UnsafeViewBackward0", numbers=("dropout_p",),
    saves={"query": "*", "keys": "*", "value": "*", "attn_mask": "*"},
)  # fmt: skip
def attention_dropout(
    key: Array, query: Array, keys: Array, value: Array, attn_mask: Array | None = None,
    dropout_p: Any = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:  # fmt: skip
    """Attend with dropout on the probabilities; `key` is the PRNG key, `keys` are the keys."""
    _errors(query, keys, value, attn_mask, dropout_p)
    keys, value = _grouped(query, keys, value, enable_gqa)
    weights = _probabilities(query, keys, attn_mask, is_causal, scale)
    weights = dropped(key, weights, dropout_p, weights.shape)
    return _product(cast(weights, value.dtype), value, -2, value.dtype)
