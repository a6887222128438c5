"""Channels last: strides of images whose channels lie side by side in memory.

XLA chooses the layouts of a compiled program, so they change no computation: they say what `view`
refuses, what is contiguous, and how results and gradients lie. Ops on images keep the order of
their input, as PyTorch's kernels do; elementwise ops do so by their own rule (`of_results.py`).
"""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import Layout

from ..._core.memory_format import RANKS, channels_last, channels_last_3d, preserve_format

Strides = tuple[int, ...] | None

# Kernels that make results in the memory format of their first operand, by its number of dims.
_2D = frozenset({
    "conv2d", "conv_transpose2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "constant_pad_nd",
    "native_channel_shuffle", "pad", "_max_unpool", "max_pool2d", "max_pool2d_with_indices",
})  # fmt: skip
_BOTH = frozenset({
    "max_pool3d", "max_pool3d_with_indices", "_native_batch_norm", "native_group_norm",
    "interpolate",
})  # fmt: skip
_WEIGHTED = frozenset({"conv2d", "conv_transpose2d"})
_COPIES = frozenset({"clone", "contiguous", "_to_copy"})
ELSEWHERE = _COPIES | {"cat"}  # their gradients have rules of their own
ON_IMAGES = _2D | _BOTH | ELSEWHERE


def strides_in(shape: Any, wanted: Any) -> Strides:
    """Find the strides of a tensor in a memory format, None if it is row-major.

    Raises:
      RuntimeError: the tensor has too few or too many dims for it, in PyTorch's words.
    """
    rank = RANKS.get(wanted)
    if rank is None:
        return None
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {wanted._name} format")
    strides, step = [0] * rank, 1
    for d in (1, *range(rank - 1, 1, -1), 0):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def suggested(found: Layout) -> Any:
    """Find the memory format that strides suggest, None for row-major; as PyTorch guesses it."""
    wanted = {4: channels_last, 5: channels_last_3d}.get(len(found.shape))
    if wanted is None or 0 in found.shape or found.strides[1] == 0:
        return None
    least = 0
    for d in (1, *range(len(found.shape) - 1, 1, -1), 0):
        stride = found.strides[d]
        if stride < least or d == 0 and least == found.strides[1]:
            return None
        least = stride * found.shape[d]
    return wanted


def memory_format_of(op: Any, call: Any) -> Any:
    """Find the memory format that a copy is asked for, None if it is not."""
    at = op.parameters.index("memory_format")
    return call.args[at] if len(call.args) > at else call.kwargs.get("memory_format")


def kept(op: Any, call: Any, operands: list[Layout], avals: Any) -> tuple[Strides, ...] | None:
    """Find the strides of the results of an op on images, None if all are row-major."""
    name = op.name
    if name in _COPIES:
        wanted = memory_format_of(op, call)
        return None if wanted not in RANKS else (strides_in(avals[0].shape, wanted),)
    if name == "cat":
        formats = {suggested(x) for x in operands}
        return _all_in(formats.pop() if len(formats) == 1 else None, avals)
    if name == "pad" and "circular" in (*call.args, *call.kwargs.values()):
        return None
    return in_format_of(op, operands, avals)


def in_format_of(op: Any, operands: list[Layout], avals: Any) -> tuple[Strides, ...] | None:
    """Find strides of results or gradients in the memory format of an op's first operand."""
    if op.name in _2D and len(operands[0].shape) != 4:
        return None
    wanted = suggested(operands[0])
    if wanted is None and op.name in _WEIGHTED and len(operands) > 1:
        wanted = suggested(operands[1])
    return _all_in(wanted, avals)


def _all_in(wanted: Any, avals: Any) -> tuple[Strides, ...] | None:
    if wanted is None:
        return None
    rank = RANKS[wanted]
    return tuple(strides_in(a.shape, wanted) if len(a.shape) == rank else None for a in avals)


def is_in(found: Layout, wanted: Any) -> bool:
    """Tell whether a tensor lies as `to` is asked to, by what its strides suggest."""
    if wanted in (None, preserve_format):
        return True
    return suggested(found) is (wanted if wanted in RANKS else None)
