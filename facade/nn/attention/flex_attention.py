"""PyTorch's `torch.nn.attention.flex_attention`: attention by functions of scores and places."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from ..._core import dtypes as _dtypes
from ..._ops.creation.factories import arange, zeros
from ...func import vmap
from ._block_mask import _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE
from ._block_mask import BlockMask as BlockMask
from ._block_mask import MaskMod, _sliced_mask_mod_error
from ._block_mask import noop_mask as noop_mask
from ._blocks import blocks_of_mask, ordered
from ._flex_checks import check_block_mask, check_inputs, check_options

__all__ = [
    "BlockMask", "flex_attention", "AuxOutput", "AuxRequest", "FlexKernelOptions",
    "create_block_mask", "create_mask", "or_masks", "and_masks", "noop_mask",
]  # fmt: skip

ScoreMod = Callable[[Any, Any, Any, Any, Any], Any]


class FlexKernelOptions(TypedDict, total=False):
    """Hints for PyTorch's kernels; XLA chooses its own."""

    BACKEND: Any
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool


class AuxRequest(NamedTuple):
    """Ask `flex_attention` for more than the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Hold what `AuxRequest` asked for, None for the rest."""

    lse: Any = None
    max_scores: Any = None


def _at_all_places(fn: Callable[..., Any], prefix: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """Map a function of batch, head, query and key over all of them, keys innermost."""
    for axis in (3, 2, 1, 0):
        dims = tuple(0 if i == axis else None for i in range(4))
        fn = vmap(fn, in_dims=prefix + dims)
    return fn


def _places(sizes: Any, device: Any) -> tuple[Any, ...]:
    return tuple(arange(0, n, device=device) for n in sizes)


def _takes_score(mod: Callable[..., Any]) -> bool:
    """Tell whether a function modifies scores, by how many arguments it asks for."""
    given = inspect.signature(mod).parameters.values()
    asked = sum(p.default is inspect.Parameter.empty for p in given)
    if asked not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {asked}")
    return asked == 5


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None,
) -> Any:  # fmt: skip
    """Make the mask `(B, H, Q_LEN, KV_LEN)` of a `mask_mod`, or of what a `score_mod` leaves out.

    Args:
      mod_fn: `mask_mod(b, h, q, kv)` or `score_mod(score, b, h, q, kv)`.
      B, H: 1 if None.
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _places(sizes, device)
    if _takes_score(mod_fn):
        scores = _at_all_places(mod_fn, (0,))(zeros(sizes, device=device), *places)
        return scores.isneginf().logical_not()
    return _at_all_places(mod_fn)(*places)


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """Make a `BlockMask` of a function of places, True where to attend.

    Args:
      mask_mod: `mask_mod(b, h, q, kv)`.
      B, H: 1 if None: the mask is the same for all.
      BLOCK_SIZE: of queries and keys.
      separate_full_blocks: keep those that are True all over apart.
      compute_dq_write_order, dq_kv_order: for PyTorch's kernels; without effect.
    """
    if _takes_score(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    partial, full = blocks_of_mask(mask, size, separate_full_blocks)
    count, which = ordered(partial)
    full_count, full_which = (None, None) if full is None else ordered(full)
    return BlockMask.from_kv_blocks(
        count, which, full_count, full_which, BLOCK_SIZE=size, mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )  # fmt: skip


def _combined(mask_mods: tuple[MaskMod, ...], every: bool) -> MaskMod:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def combined(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = (b.new_ones if every else b.new_zeros)((), dtype=_dtypes.bool)
        for mod in mask_mods:
            found = mod(b, h, q_idx, kv_idx)
            result = result & found if every else result | found
        return result

    combined.__name__ = "and_mask" if every else "or_mask"
    return combined


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Attend where any of several functions says so."""
    return _combined(mask_mods, False)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Attend where all of several functions say so."""
    return _combined(mask_mods, True)


def flex_attention(
    query: Any, key: Any, value: Any, score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attend with scores that a function changes, to pairs that a mask's function allows.

    Args:
      query: `(B, Hq, L, E)`.
      key: `(B, Hkv, S, E)`, whose batch and, with `enable_gqa`, heads may be fewer.
      value: `(B, Hkv, S, Ev)`.
      score_mod: `score_mod(score, b, h, q, kv)`, the new score; unchanged if None.
      block_mask: of `create_block_mask`, everything if None.
      scale: of the scores, `1 / sqrt(E)` if None.
      enable_gqa: let groups of query heads share heads of keys and values.
      return_lse: deprecated for `return_aux=AuxRequest(lse=True)`.
      kernel_options: hints for PyTorch's kernels.
      return_aux: what to return beside the result.

    Returns:
      `(B, Hq, L, Ev)`; with `return_aux` also an `AuxOutput`, with `return_lse` the logarithms of
      the sums of the exponentials of the scores, `(B, Hq, L)`.
    """
    check_inputs(query, key, value, enable_gqa)
    if query.size(0) != key.size(0) or block_mask is not None:
        check_block_mask(query, key, block_mask)
    if block_mask is not None and block_mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _warn_of_lse()
    check_options(kernel_options)
    scores, low = _scores(query, key, score_mod, block_mask, scale), float("-inf")
    empty = (scores == low).all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    groups = query.size(1) // value.size(1)
    value = value.repeat_interleave(groups, 1) if groups > 1 else value
    out = weights.to(query.dtype) @ value.to(query.dtype)
    if not return_lse and return_aux is None:
        return out
    lse = most = None
    if return_lse or (return_aux is not None and return_aux.lse):
        lse = scores.masked_fill(empty, 0.0).logsumexp(-1).masked_fill(empty.squeeze(-1), low)
    if return_aux is None:
        return out, lse
    if return_aux.max_scores:
        most = scores.amax(-1)
    return out, AuxOutput(lse, most)


def _scores(
    query: Any, key: Any, score_mod: ScoreMod | None, block_mask: BlockMask | None,
    scale: float | None,
) -> Any:  # fmt: skip
    """Return the scores `(B, Hq, L, S)` after both functions, in single precision at least."""
    precise = _dtypes.float64 if query.dtype == _dtypes.float64 else _dtypes.float32
    groups = query.size(1) // key.size(1)
    key = key.repeat_interleave(groups, 1) if groups > 1 else key
    scores = query.to(precise) @ key.to(precise).transpose(-2, -1)
    scores = scores * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    places = _places(scores.shape, scores.device)
    if score_mod is not None:
        scores = _at_all_places(score_mod, (0,))(scores, *places).to(precise)
    if block_mask is not None:
        mask = _at_all_places(block_mask.mask_mod)(*places)
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    return scores


_warned: set[str] = set()


def _warn_of_lse() -> None:
    if "lse" not in _warned:  # once, as PyTorch does it
        _warned.add("lse")
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
            stacklevel=3,
        )


_end_at_callers(__name__)
