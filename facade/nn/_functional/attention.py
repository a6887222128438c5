"""Multi-head attention as PyTorch composes it."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE

from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from .attention_checks import check_padding, check_ranks, check_sizes
from .dropout import dropout
from .linear import linear
from .masks import canonical_mask, dtype_of
from .sparse import scaled_dot_product_attention

_VIEW, _SELECT, _PERMUTE = TABLE["view"], TABLE["select"], TABLE["permute"]


def _projected(
    query: Any, key: Any, value: Any, packed: Any, bias: Any, separate: Any
) -> tuple[Any, Any, Any]:
    """Queries, keys and values after their linear layers; one matmul for self-attention."""
    if separate is not None:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        pairs = zip((query, key, value), separate, biases, strict=True)
        return tuple(linear(x, w, b) for x, w, b in pairs)  # type: ignore[return-value]
    size = query.shape[-1]
    if key is value and query is key:
        both = linear(query, packed, bias)
        both = both.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        return both[0].contiguous(), both[1].contiguous(), both[2].contiguous()
    weights = packed.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    pairs = zip((query, key, value), weights, biases, strict=True)
    return tuple(linear(x, w, b) for x, w, b in pairs)  # type: ignore[return-value]


def _self_projected(x: Any, packed: Any, bias: Any, num_heads: int) -> tuple[Any, Any, Any]:
    """Queries, keys and values of self-attention, `(batch, heads, length, width)`.

    PyTorch copies what is read here where it lies: its kernels multiply rows.
    """
    length, batch, size = x.shape
    made = linear(x.reshape(length * batch, size), packed, bias)
    shape = (length, batch, 3, num_heads, size // num_heads)
    q, k, v = (
        apply(_PERMUTE, apply(_SELECT, apply(_VIEW, made, shape), 2, i), (1, 2, 0, 3))
        for i in range(3)
    )
    return q, k, v


@in_one_step
def _self_attention(
    x: Any, packed: Any, bias: Any, num_heads: int, mask: Any, padding: Any, dropout_p: float,
    causal: bool, out_weight: Any, out_bias: Any,
) -> Any:  # fmt: skip
    """Attention of a batch to itself, `(length, batch, size)`, between its linear layers."""
    length, batch, size = x.shape
    heads = _self_projected(x, packed, bias, num_heads)
    mask = _merged(mask, padding, batch, num_heads, length)
    mask = _by_heads(mask, batch, num_heads, length)
    out = scaled_dot_product_attention(*heads, mask, dropout_p, causal)
    out = out.permute(2, 0, 1, 3).reshape(length * batch, size)
    return linear(out, out_weight, out_bias).view(length, batch, -1)


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Attention in `num_heads` heads between linear layers, `(L, N, E)` or `(L, E)`.

    Returns the result and the attention weights (averaged over heads), None unless asked for.
    """
    batched = query.dim() == 3
    check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        same, shared = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if shared else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    if size != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}"
        )
    width = size // num_heads
    if width * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    check_sizes(query, key, value, None, num_heads, use_separate_proj_weight)
    padding = canonical_mask(
        key_padding_mask, "key_padding_mask", dtype_of(attn_mask), "attn_mask", query.dtype
    )
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal else canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    check_sizes(query, key, value, mask, num_heads, use_separate_proj_weight)
    dropout_p = dropout_p if training else 0.0
    plain = bias_k is bias_v is static_k is static_v is separate is None
    if plain and key is value and query is key and not (need_weights or add_zero_attn):
        out = _self_attention(
            query, in_proj_weight, in_proj_bias, num_heads, mask, padding, dropout_p, causal,
            out_proj_weight, out_proj_bias,
        )  # fmt: skip
        return (out if batched else out.squeeze(1)), None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)
    cat = TABLE["cat"]
    if bias_k is not None and bias_v is not None:
        k = apply(cat, (k, bias_k.repeat(1, batch, 1)))
        v = apply(cat, (v, bias_v.repeat(1, batch, 1)))
        mask, padding = _one_more(mask), _one_more(padding)
    q = q.view(length, batch * num_heads, width).transpose(0, 1)
    k = (
        static_k
        if static_k is not None
        else (k.view(k.shape[0], batch * num_heads, width).transpose(0, 1))
    )
    v = (
        static_v
        if static_v is not None
        else (v.view(v.shape[0], batch * num_heads, width).transpose(0, 1))
    )
    if add_zero_attn:
        zeros = k.new_zeros((batch * num_heads, 1, width))
        k, v = apply(cat, (k, zeros), 1), apply(cat, (v, zeros), 1)
        mask, padding = _one_more(mask), _one_more(padding)
    source = k.shape[1]
    mask = _merged(mask, padding, batch, num_heads, source)
    if need_weights:
        q = q * math.sqrt(1.0 / width)
        keys = k.transpose(-2, -1)
        scores = q.bmm(keys) if mask is None else apply(TABLE["baddbmm"], mask, q, keys)
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = dropout(weights, p=dropout_p)
        out = weights.bmm(v)
    else:
        mask = _by_heads(mask, batch, num_heads, source)
        out = scaled_dot_product_attention(
            q.view(batch, num_heads, length, width), k.view(batch, num_heads, source, width),
            v.view(batch, num_heads, source, width), mask, dropout_p, causal,
        )  # fmt: skip
        out = out.reshape(batch * num_heads, length, width)
        weights = None
    out = out.transpose(0, 1).contiguous().view(length * batch, size)
    out = linear(out, out_proj_weight, out_proj_bias).view(length, batch, -1)
    if weights is not None:
        weights = weights.view(batch, num_heads, length, source)
        weights = weights.mean(dim=1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    return (out if batched else out.squeeze(1)), weights


def _merged(mask: Any, padding: Any, batch: int, num_heads: int, source: int) -> Any:
    """Return both masks as one, `(1 or batch * num_heads, length or 1, source)`."""
    if mask is not None and mask.dim() == 2:
        mask = mask.unsqueeze(0)
    check_padding(padding, batch, source)
    if padding is None:
        return mask
    padding = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, source)
    return padding if mask is None else mask + padding


def _by_heads(mask: Any, batch: int, num_heads: int, source: int) -> Any:
    """Return a merged mask with a dim for heads."""
    if mask is None:
        return None
    each = mask.shape[0] != 1 or batch * num_heads == 1
    return mask.view(batch, num_heads, -1, source) if each else mask.unsqueeze(0)


def _one_more(mask: Any) -> Any:
    """Return a mask with a column more, where attending is allowed."""
    if mask is None:
        return None
    column = mask.new_zeros((*mask.shape[:-1], 1))
    return apply(TABLE["cat"], (mask, column), -1)
