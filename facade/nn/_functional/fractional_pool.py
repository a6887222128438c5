"""Fractional max pooling: draws the windows' places unless they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._dispatch.record import apply
from ..._ops.calls.functions import plain
from ..._ops.creation.factories import rand


def _indexed(dims: int) -> Callable[..., Any]:
    op = TABLE[f"nn.functional._fractional_max_pool{dims}d"]
    name = f"fractional_max_pool{dims}d"

    def pool(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = True, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            output_size = _sizes(name, dims, input, output_ratio)
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.shape[0]
            shape = (batch, input.shape[-dims - 1], dims)
            _random_samples = rand(shape, dtype=input.dtype)
        return tuple(apply(op, input, plain(kernel_size), plain(output_size), _random_samples))

    pool.__name__ = pool.__qualname__ = f"{name}_with_indices"
    pool.__doc__ = "Maxima over windows at pseudo-random places, and their flat positions."
    return pool


def _sizes(name: str, dims: int, input: Any, ratio: Any) -> list[int]:
    """Return the sizes of the output; of three dims PyTorch takes one ratio for all."""
    if dims == 2 and isinstance(ratio, (tuple, list)) and len(ratio) > 2:
        raise ValueError(
            f"{name} requires output_ratio to either be a single Int or tuple of Ints."
        )
    ratio = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * dims
    return [int(input.shape[i - dims] * ratio[i]) for i in range(dims)]


def _plain(dims: int) -> Callable[..., Any]:
    indexed = _INDEXED[dims]

    def pool(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        made = indexed(
            input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
        )
        return made if return_indices else made[0]

    pool.__name__ = pool.__qualname__ = f"fractional_max_pool{dims}d"
    pool.__doc__ = f"""Maxima over windows of the last {dims} dims at pseudo-random places.

    Args:
      kernel_size: the windows' size, an int or {dims}.
      output_size, output_ratio: how many windows, or what part of the input's sizes.
      return_indices: give the maxima's flat positions too.
      _random_samples: `(N, C, {dims})` draws from [0, 1) that say where, or None to draw them.
    """
    return pool


_INDEXED = {2: _indexed(2), 3: _indexed(3)}
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = _INDEXED.values()
fractional_max_pool2d, fractional_max_pool3d = _plain(2), _plain(3)
