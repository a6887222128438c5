"""Checks of the arguments of `flex_attention`, with PyTorch's messages."""

from __future__ import annotations

from typing import Any

_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


def check_inputs(query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
    """Raise unless queries, keys and values fit one another."""
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, shared = query.size(1), key.size(1)
    if not enable_gqa and heads != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={shared}."
        )


def check_block_mask(query: Any, key: Any, mask: Any) -> None:
    """Raise unless the mask is for so many examples, queries and keys."""
    batch, shared = query.size(0), key.size(0)
    if mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask=None, Bq={batch}, and Bkv={shared}."
        )
    if batch != shared and mask.kv_num_blocks.size(0) != batch:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to "
            f"have the same batch size, but got Bq={batch}, Bkv={shared}, "
            f"B_block_mask={mask.kv_num_blocks.size(0)}."
        )
    queries, keys, wanted = query.size(-2), key.size(-2), mask.shape[-2:]
    start = (
        f"block_mask was created for block_mask.shape={mask.shape} but got q_len={queries} and "
        f"kv_len={keys}. As the block mask was created for a "
    )
    if queries > wanted[0] or keys > wanted[1]:
        raise ValueError(
            f"{start}smaller length than you're using it for, you likely need to create a new "
            "block mask."
        )
    if queries < wanted[0] or keys < wanted[1]:
        raise ValueError(
            f"{start}larger length than you're using it for, you can either 1. create a new block "
            "mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
            "length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the "
            "block mask to the upper left corner, which does not work for all mask_mods!"
        )


def check_options(options: Any) -> None:
    """Raise for hints that contradict each other or that PyTorch does not know."""
    options = options or {}
    if "BACKEND" not in options:
        return
    if options.get("FORCE_USE_FLEX_ATTENTION", False):
        raise RuntimeError(
            "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. BACKEND supersedes "
            "the legacy knob; please drop FORCE_USE_FLEX_ATTENTION and only specify the desired "
            "BACKEND."
        )
    if options["BACKEND"] not in _BACKENDS:
        raise ValueError(
            f"Invalid BACKEND value '{options['BACKEND']}'. Must be one of {_BACKENDS}"
        )
