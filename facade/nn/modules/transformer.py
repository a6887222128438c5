"""PyTorch's `torch.nn.modules.transformer`: encoder, decoder, and both."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from ..._core.trie import local
from ..._ops.creation.factories import full
from .. import functional as F
from .._functional.masks import canonical_mask, dtype_of
from ..init import xavier_uniform_
from ._layers.transformer_layers import TransformerDecoderLayer as TransformerDecoderLayer
from ._layers.transformer_layers import TransformerEncoderLayer as TransformerEncoderLayer
from ._layers.transformer_layers import _get_activation_fn as _get_activation_fn
from .container import ModuleList
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]  # fmt: skip


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
    return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_seq_len(src: Any, batch_first: bool) -> int:
    return int(src.size(1 if batch_first and src.dim() == 3 else 0))


def _detect_is_causal_mask(mask: Any, is_causal: bool | None = None, size: Any = None) -> bool:
    """Tell whether a mask is the causal one of this size, unless the caller has said it."""
    if is_causal is not None or mask is None:
        return is_causal is True
    size = mask.size(-2) if size is None else size
    if tuple(mask.shape) != (size, size):
        return False
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return bool((mask == causal).all())


def _is_causal(mask: Any, said: bool | None, size: int, layers: ModuleList, kind: type) -> bool:
    """As `_detect_is_causal_mask`, where it makes a difference.

    The layers here compute the same by a causal mask and by the hint that it is one: the mask is
    not looked at for them, which could run the program.
    """
    if said is None and all(type(layer) is kind for layer in layers):
        return False
    return _detect_is_causal_mask(mask, said, size)


class TransformerEncoder(Module):
    """Stack `num_layers` copies of a layer.

    Args:
      encoder_layer: what is copied.
      norm: what follows the last one, or None.
      enable_nested_tensor: PyTorch's switch for inference; what follows padding is 0 with it, in
        `eval()` and without gradients, as it is there.
      mask_check: that is done only where padding is at the ends.
    """

    __constants__ = ["norm"]

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why = _why_not_nested(encoder_layer)
        if enable_nested_tensor and why:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because " + why,
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        """Run all layers; arguments as of `TransformerEncoderLayer`.

        Args:
          is_causal: `mask` is the causal one; None finds it out where a layer could tell.
        """
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", dtype_of(mask), "mask", src.dtype
        )
        mask = canonical_mask(mask, "mask", None, "", src.dtype, False)
        first = self.layers[0]
        length = _get_seq_len(src, first.self_attn.batch_first)
        causal = _is_causal(mask, is_causal, length, self.layers, TransformerEncoderLayer)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._leaves_out(src):
            output = self._without(output, padding)
        return output if self.norm is None else self.norm(output)

    def _leaves_out(self, src: Any) -> bool:
        """Tell whether PyTorch would leave out what is padding, and fill in zeros."""
        first, mode = self.layers[0], local.mode
        return (
            getattr(self, "use_nested_tensor", False)
            and not first.training
            and src.dim() == 3
            and mode.autocast is None
            and not (mode.grad and any(x.requires_grad for x in (src, *first.parameters())))
        )

    def _without(self, output: Any, padding: Any) -> Any:
        """Zero what is padding, where it is at the ends if that is to be checked."""
        away = padding != 0
        if getattr(self, "mask_check", True):
            inside = away[:, :-1] & away[:, 1:].logical_not()
            away = away & inside.any().logical_not()
        return output.masked_fill(away.unsqueeze(-1), 0.0)


def _why_not_nested(layer: Any) -> str:
    """Return why a layer cannot use nested tensors, in PyTorch's words; "" if it can."""
    said = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{said} was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return f"{said}.norm_first was True"
    if not attention.batch_first:
        return (
            f"{said}.self_attn.batch_first was not True"
            "(use batch_first for better inference performance)"
        )
    if not attention._qkv_same_embed_dim:
        return f"{said}.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return f"{said}.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return f"{said}.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return f"{said}.norm1.eps was not equal to {said}.norm2.eps"
    if attention.num_heads % 2 == 1:
        return f"{said}.self_attn.num_heads is odd"
    return ""


class TransformerDecoder(Module):
    """Stack `num_layers` copies of a decoder's layer, and `norm` behind the last, unless None."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """Run all layers; arguments as of `TransformerDecoderLayer`."""
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        causal = _is_causal(tgt_mask, tgt_is_causal, length, self.layers, TransformerDecoderLayer)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encode one sequence and decode another, as in "Attention Is All You Need".

    Args:
      num_encoder_layers, num_decoder_layers: how many layers each has.
      custom_encoder, custom_decoder: what to use instead, or None.
      d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
      norm_first, bias: those of `TransformerEncoderLayer`.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            encoder_layer = TransformerEncoderLayer(*layer)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            decoder_layer = TransformerDecoderLayer(*layer)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """Encode `src` and decode `tgt`; masks as of the layers."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return `(sz, sz)`, `-inf` above the diagonal and 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, dtype=dtype, device=device)

    def _reset_parameters(self) -> None:
        """Draw all matrices by `xavier_uniform_`."""
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)
