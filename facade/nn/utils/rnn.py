"""PyTorch's `torch.nn.utils.rnn`: sequences of several lengths as one tensor, padded or packed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._core.grad_modes import no_grad
from ..._ops.creation.factories import arange as _arange
from ..._signatures.check_arguments import check_signatures
from ._packed import PackedSequence as PackedSequence
from ._packed import PackedSequence_ as PackedSequence_
from ._packed import bind as bind
from ._packed import invert_permutation as invert_permutation
from ._packed import pack_padded_sequence as pack_padded_sequence
from ._packed import pad_packed_sequence as pad_packed_sequence

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence",
    "pad_sequence", "unpad_sequence", "pack_sequence", "unpack_sequence",
]  # fmt: skip

_PADDED = "tuple of Tensors sequences, bool batch_first, float padding_value, str padding_side"


def pad_sequence(
    sequences: Iterable[Any], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:  # fmt: skip
    """Sequences `(n_i, ...)` as one tensor `(most, sequences, ...)`.

    Args:
      batch_first: whether the result is `(sequences, most, ...)`.
      padding_value: what stands where a sequence is shorter than the longest.
      padding_side: "right" or "left": where that is.

    Raises:
      RuntimeError: there are no sequences, or their other dims do not fit.

    >>> import leafax
    >>> leafax.nn.utils.rnn.pad_sequence([leafax.ones(2), leafax.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    parts: Any = tuple(sequences)
    given = (parts, batch_first, padding_value, padding_side)
    check_signatures((_PADDED,), given, {}, "pad_sequence")
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    most = max(x.size(0) for x in parts)
    outer = (len(parts), most) if batch_first else (most, len(parts))
    with no_grad():
        out = parts[0].new_empty((*outer, *parts[0].shape[1:])).fill_(padding_value)
    for i, x in enumerate(parts):
        start = most - x.size(0) if padding_side == "left" else 0
        out.select(int(not batch_first), i).narrow(0, start, x.size(0)).copy_(x)
    return out


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Return the sequences of these lengths that `pad_sequence` put together; runs the program.

    As PyTorch's, it turns a tensor that is not `batch_first` in place.
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    places = _arange(padded_sequences.shape[1], device=lengths.device)
    return [x[places < n] for x, n in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: list[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences `(n_i, ...)` into one tensor without padding.

    Args:
      enforce_sorted: whether they must be sorted by their lengths, the longest first; else they
        are sorted here, and the result knows their order.
    """
    lengths = [x.size(0) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Take the sequences apart that `pack_sequence` put together."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return [x[:n] for x, n in zip(padded, lengths.tolist(), strict=True)]
