"""Sequences of several lengths in one tensor without padding, in the order of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from ..._core.dtypes import int64
from ..._core.handle import Handle
from ..._ops.creation.factories import arange, empty_like
from ..._ops.creation.from_data import as_tensor
from .._functional.packed_sequence import Places


class PackedSequence_(NamedTuple):
    """The fields of `PackedSequence`."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def bind(optional: Any, fn: Callable[[Any], Any]) -> Any:
    """Call `fn` with what is there; None stays None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Hold sequences of several lengths: all first steps, then all second ones, and so on.

    Made by `pack_padded_sequence` and `pack_sequence`; recurrent layers take and return it.

    Attributes:
      data: `(total, ...)`.
      batch_sizes: how many sequences have each step, int64, on the CPU.
      sorted_indices: which sequence of the batch each was, the longest being first; or None.
      unsorted_indices: the inverse of that, or None.
    """

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Self:  # fmt: skip
        """Make one of its fields, or of `((data, batch_sizes), sorted_indices=...)`."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu" and data.device.type == "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Any, move: Callable[[Any], Any]) -> Self:
        return type(self)(
            data, self.batch_sizes, bind(self.sorted_indices, move),
            bind(self.unsorted_indices, move),
        )  # fmt: skip

    def pin_memory(self) -> Self:
        """Pin the data, as `Tensor.pin_memory` does."""
        return self._with(self.data.pin_memory(), lambda x: x.pin_memory())

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert the data, as `Tensor.to` does; itself if that changes nothing."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda x: x.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Move the data to a GPU."""
        data = self.data.cuda(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda x: x.to(data.device))

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Move the data to the CPU."""
        data = self.data.cpu(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda x: x.to(data.device))

    def _as(self, method: str) -> Self:
        data = getattr(self.data, method)()
        return self if data is self.data else self._with(data, lambda x: x)

    def double(self) -> Self:
        """Convert the data to float64."""
        return self._as("double")

    def float(self) -> Self:
        """Convert the data to float32."""
        return self._as("float")

    def half(self) -> Self:
        """Convert the data to float16."""
        return self._as("half")

    def long(self) -> Self:
        """Convert the data to int64."""
        return self._as("long")

    def int(self) -> Self:
        """Convert the data to int32."""
        return self._as("int")

    def short(self) -> Self:
        """Convert the data to int16."""
        return self._as("short")

    def char(self) -> Self:
        """Convert the data to int8."""
        return self._as("char")

    def byte(self) -> Self:
        """Convert the data to uint8."""
        return self._as("byte")

    @property
    def is_cuda(self) -> bool:
        """Tell whether the data are on a GPU."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Tell whether the data are in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """Return the inverse of a permutation `(n,)`, None for None."""
    if permutation is None:
        return None
    places = arange(0, permutation.numel(), device=permutation.device)
    return empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences: leave out what stands behind their ends.

    Args:
      input: `(T, N, ...)`, or `(N, T, ...)` if `batch_first`.
      lengths: of each sequence, a list or a tensor; they are looked at.
      enforce_sorted: whether they must fall; else the sequences are sorted by them.

    Raises:
      RuntimeError: the lengths are not sorted, not positive, or too many or few.
    """
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    found = _checked(lengths, input.size(0 if batch_first else 1), enforce_sorted)
    order = None
    if not enforce_sorted:
        by_length = np.argsort(-found, kind="stable")
        found, order = found[by_length], as_tensor(by_length).to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    places = Places.of_lengths(found)
    if places.shape[0] > input.size(0):
        raise RuntimeError(
            f"Expected `len(lengths)` to be at most {input.size(0)}, but got a sequence of length "
            f"{places.shape[0]}"
        )
    return PackedSequence(places.packed(input), as_tensor(places.sizes), order, None)


def _checked(lengths: Any, batch: int, enforce_sorted: bool) -> np.ndarray:
    """Return the lengths as NumPy's, if they are those of packed sequences."""
    if isinstance(lengths, Handle):
        lengths = lengths.tolist()  # type: ignore[attr-defined]
    found = np.asarray(lengths).astype(np.int64)
    if enforce_sorted and (np.diff(found) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if len(found) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(found)} "
            f"(batch_size={batch})"
        )
    if (found <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    return found


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Pad packed sequences, in the order that they had when they were packed.

    Args:
      total_length: how many steps the result has, as many as the longest sequence if None.

    Returns:
      `(T, N, ...)`, or `(N, T, ...)` if `batch_first`; and the length of each.

    Raises:
      ValueError: a sequence is longer than `total_length`.
    """
    places = Places.of(sequence.batch_sizes)
    longest = places.shape[0]
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {longest}"
        )
    padded = places.padded(sequence.data, padding_value, total_length)
    lengths = places.lengths()
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is None:
        return padded, as_tensor(lengths, dtype=int64)
    lengths = lengths[np.asarray(order.tolist(), np.int64)]
    padded = padded.index_select(0 if batch_first else 1, order)
    return padded, as_tensor(lengths, dtype=int64)
