"""Steps that are undone inside the program if a gradient was not finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import Op

from ..._core.trie import local
from ..._ops.composites.multi_tensor_writes import update_many
from ..._storage.enter import enter


def skip_if(found_inf: Any, tensors: Sequence[Any], step: Callable[[], None]) -> None:
    """Record `step`, and give the tensors back what they held where `found_inf` is not 0."""
    before = tuple(enter(t, local.trace) for t in tensors)
    step()
    if tensors:
        update_many(_UNDO, tensors, before, found_inf, counts=0)  # the step counted


def _undo(tensors: Any, before: Any, found_inf: Any, numbers: Any) -> Any:
    return tuple(
        jnp.where(found_inf != 0, old, new) for new, old in zip(tensors, before, strict=True)
    )


_UNDO = Op(_undo, name="skip_if", namespace="optim", differentiable=False)
