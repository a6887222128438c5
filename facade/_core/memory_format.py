"""Layouts and memory formats: names for how tensors lie in memory; all are dense."""

from __future__ import annotations

from typing import Any


class layout:
    """A storage layout of tensors; all of leafax's tensors are `strided`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class memory_format(layout):
    """In which order a tensor's dims lie in memory."""


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = map(layout, ("sparse_coo", "sparse_csr", "sparse_csc"))
# Layouts that no tensor has here.
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
legacy_contiguous_format = contiguous_format
jagged = layout("jagged")  # of nested tensors, which are not there
RANKS = {channels_last: 4, channels_last_3d: 5}


def is_laid_out(shape: Any, strides: Any, wanted: Any) -> bool:
    """Return whether strides are those of a tensor in the channels-last format `wanted`."""
    if len(shape) != RANKS[wanted]:
        return False
    expected = 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] != 1:
            if strides[d] != expected:
                return False
            expected *= shape[d]
    return True
