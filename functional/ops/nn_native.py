"""Functions that PyTorch's kernels have names for, as they are called from Python."""

from __future__ import annotations

from typing import Any

import jax

from .._op import op

Array = jax.Array


@op(method=False, backward="ConstantPadNdBackward0")
def constant_pad_nd(input: Array, pad: tuple[int, ...], value: Any = 0) -> Array:
    """Pad dims from the last one with a number."""
    from .nn_pad import pad as padded

    return padded(input, pad, "constant", value)
