"""Multi-head attention as a layer."""

from __future__ import annotations

from typing import Any

from ...._ops.creation.factories import empty
from ... import functional as F
from ..._functional.masks import canonical_mask, dtype_of
from ...init import constant_, xavier_normal_, xavier_uniform_
from ...parameter import Parameter
from .._module.attributes import parameter_of
from ..linear import NonDynamicallyQuantizableLinear
from ..module import Module


class MultiheadAttention(Module):
    """Attend in `num_heads` heads, between linear layers of queries, keys, values and results.

    PyTorch's other path for inference, which takes nested tensors, is a matter of speed: here the
    compiled program is the same.
    """

    __constants__ = ["batch_first"]

    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(empty((3 * embed_dim, embed_dim), **made))
            for name in widths:
                self.register_parameter(f"{name}_proj_weight", None)
        else:
            for name, width in widths.items():
                setattr(self, f"{name}_proj_weight", Parameter(empty((embed_dim, width), **made)))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(empty(3 * embed_dim, **made))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        if add_bias_kv:
            self.bias_k = Parameter(empty((1, 1, embed_dim), **made))
            self.bias_v = Parameter(empty((1, 1, embed_dim), **made))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the weights, and set the biases of the linear layers to 0."""
        if self._qkv_same_embed_dim:
            xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # files of PyTorch 1.1 lack it
        super().__setstate__(state)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Attend with `query` to `key` and take sums of `value`.

        Args:
          query: `(L, N, E)`, `(N, L, E)` if `batch_first`, or `(L, E)`; so keys and values, of
            length `S`.
          key_padding_mask: `(N, S)`, True (or a number to be added) for keys to leave out.
          attn_mask: `(L, S)` or `(N * num_heads, L, S)`, likewise, for pairs.
          average_attn_weights: over heads, if `need_weights`.
          is_causal: `attn_mask` is the causal one.

        Returns:
          The result in the query's shape, and the weights `(N, L, S)` or None.
        """
        padding = canonical_mask(
            key_padding_mask, "key_padding_mask", dtype_of(attn_mask), "attn_mask", query.dtype
        )
        mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = _turned(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight,
        }  # fmt: skip
        to_out = self.out_proj
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads,
            parameter_of(self, "in_proj_weight"), parameter_of(self, "in_proj_bias"),
            parameter_of(self, "bias_k"), parameter_of(self, "bias_v"), self.add_zero_attn,
            self.dropout, parameter_of(to_out, "weight"), parameter_of(to_out, "bias"),
            training=self.training, key_padding_mask=padding, need_weights=need_weights,
            attn_mask=mask, average_attn_weights=average_attn_weights, is_causal=is_causal,
            **separate,
        )  # fmt: skip
        return (out.transpose(1, 0) if turned else out), weights

    def merge_masks(
        self, attn_mask: Any, key_padding_mask: Any, query: Any
    ) -> tuple[Any, int | None]:
        """Merge both masks into one for `(N, L, E)`; and PyTorch's number of its kind.

        Returns:
          The mask `(N, num_heads, L, L)` and 2, that of padding `(N, L)` and 1, or two None.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length)
            merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2


def _turned(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Bring the lengths to the front; what is one tensor stays one, as self-attention asks."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    v = k if value is key else q if value is query else value.transpose(1, 0)
    return q, k, v
