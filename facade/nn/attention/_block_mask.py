"""Masks of attention by blocks, given by a function of the places of a query and a key."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any, Self

from ..._core.dtypes import bool as bool_dtype
from ..._core.dtypes import int32
from ._blocks import blocks_of, transposed

MaskMod = Callable[[Any, Any, Any, Any], Any]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_TENSORS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks",
    "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip
_MORE = [
    "...",
    "To print out more, set BlockMask.to_string(limit=N)",
    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Attend to everything."""
    return batch.new_ones((), dtype=bool_dtype)


def _sliced_mask_mod_error(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Raise PyTorch's words for the function of a mask that was sliced."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the "
        "mask_mod attribute is reset. You must set it from the original BlockMask's mask_mod."
        "\n\nIncorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!"
        "\n\nCorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
    )


class BlockMask:
    """Hold which blocks of keys each block of queries attends to, and the mask's function.

    The blocks tell kernels what to leave out; here the result follows from `mask_mod` alone, as
    it does in PyTorch's unfused path.

    Attributes:
      seq_lengths: how many queries and keys.
      kv_num_blocks: `(B, H, rows)`, how many blocks of keys each row has in part.
      kv_indices: `(B, H, rows, columns)`, which ones, first.
      full_kv_num_blocks, full_kv_indices: those that it has in full, or None.
      q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by columns, or None.
      BLOCK_SIZE: how many queries and keys a block has.
      mask_mod: `mask_mod(batch, head, query, key)`, True where to attend.
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Any, kv_indices: Any,
        full_kv_num_blocks: Any, full_kv_indices: Any, q_num_blocks: Any, q_indices: Any,
        full_q_num_blocks: Any, full_q_indices: Any,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
    ) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if kv_num_blocks is None:
            raise AssertionError("kv_num_blocks must be provided")
        _need_both("full_kv", full_kv_num_blocks, full_kv_indices)
        _need_both("full_q", full_q_num_blocks, full_q_indices)
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Any, kv_indices: Any, full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: MaskMod | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> Self:  # fmt: skip
        """Make a mask of the blocks of keys that each block of queries has."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _need_both("full_kv", full_kv_num_blocks, full_kv_indices)
        columns: list[Any] = [None] * 4
        if compute_q_blocks:
            columns[:2] = transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                columns[2:] = transposed(full_kv_num_blocks, full_kv_indices)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
            columns[0], columns[1], columns[2], columns[3], size,
            noop_mask if mask_mod is None else mask_mod,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return all that it holds, lengths and block size as two numbers each if `flatten`."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        tensors = tuple(getattr(self, name) for name in _TENSORS)
        return (*lengths, *tensors, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the mask that it stands for."""
        return (*tuple(self.kv_indices.shape)[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return how many pairs of queries and keys there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return how many percent of the pairs lie in blocks that are left out."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        computed = blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to_dense(self) -> Any:
        """Return `(..., rows, columns)`, 1 for the blocks that are not left out."""
        dense = blocks_of(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return dense
        return dense | blocks_of(self.full_kv_num_blocks, self.full_kv_indices)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Draw the blocks, of the first `limit` examples and heads."""
        dense = self.to_dense().float()
        *outer, rows, columns = tuple(dense.shape)
        grid = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // most)) for n, most in zip((rows, columns), grid, strict=True)]
        drawn = []
        for i, at in enumerate(itertools.product(*map(range, outer))):
            if i == limit:
                drawn += _MORE
                break
            drawn.append(_drawing(at, dense[at].numpy(), steps))
        return "\n".join(drawn)

    def __str__(self) -> str:
        drawn = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{drawn}\n)"

    def __repr__(self) -> str:
        lines = [f"    {name}={_shape(getattr(self, name))}," for name in _TENSORS]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},", f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,", f"    mask_mod={name}",
        ]  # fmt: skip
        return "\n".join(["BlockMask(", *lines, ")"])

    def __getitem__(self, index: Any) -> Self:
        """Take some examples, heads or rows of blocks; the function is to be set anew."""
        given = index if isinstance(index, tuple) else (index,)
        given = (*given, slice(None), slice(None), slice(None))[:3]
        sizes = self.kv_num_blocks.shape[:3]
        at = tuple(
            slice(i % n, i % n + 1) if isinstance(i, int) else i
            for i, n in zip(given, sizes, strict=False)
        )
        return self._rebuilt(lambda x: x[at], self.seq_lengths, _sliced_mask_mod_error)

    def _rebuilt(
        self, change: Callable[[Any], Any], lengths: tuple[int, int], mask_mod: MaskMod
    ) -> Self:
        parts = [getattr(self, name) for name in _TENSORS[:4]]
        return self._of([None if x is None else change(x) for x in parts], lengths, mask_mod)

    def _of(self, parts: list[Any], lengths: tuple[int, int], mask_mod: MaskMod) -> Self:
        count, which, full_count, full_which = parts
        return type(self).from_kv_blocks(
            count, which, full_count, full_which, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod,
            seq_lengths=lengths, compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> Self:
        """Crop the mask to its upper left corner."""
        rows, columns = (
            -(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True)
        )
        made: list[Any] = [None] * 4
        for i, prefix in enumerate(("", "full_")):
            count = getattr(self, prefix + "kv_num_blocks")
            which = getattr(self, prefix + "kv_indices")
            if count is None:
                continue
            which, count = which[:, :, :rows, :columns], count[:, :, :rows].clamp(max=columns)
            made[2 * i] = (which < count.unsqueeze(-1)).sum(-1).to(int32)
            made[2 * i + 1] = which
        return self._of(made, (new_q_len, new_kv_len), self.mask_mod)

    def to(self, device: Any) -> Self:
        """Move its tensors to a device."""
        made = copy.copy(self)
        for name in _TENSORS:
            if getattr(self, name) is not None:
                setattr(made, name, getattr(self, name).to(device))
        return made


def _need_both(name: str, count: Any, which: Any) -> None:
    if (count is None) != (which is None):
        raise AssertionError(
            f"{name}_num_blocks and {name}_indices must be both provided or omitted"
        )


def _shape(x: Any) -> Any:
    return None if x is None else x.shape


def _drawing(at: tuple[int, ...], dense: Any, steps: list[int]) -> str:
    """One example and head, a character (twice) for some blocks."""
    drawn = f"{at}\n"
    for r in range(0, dense.shape[0], steps[0]):
        for c in range(0, dense.shape[1], steps[1]):
            share = dense[r : r + steps[0], c : c + steps[1]].mean()
            drawn += ("█" if share == 1 else " " if share == 0 else "░") * 2
        drawn += "\n"
    return drawn
