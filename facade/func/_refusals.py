"""What may not be done inside a `vmap`: looks at batched values, writes of them elsewhere."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from leafax.functional import Op

from .._handle import Handle
from .._trace import local
from ._levels import innermost, running

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
_POINTWISE = frozenset({"add", "sub", "mul", "div", "true_divide", "pow", "remainder", "fmod"})


def look(t: Any, reason: str) -> Any:
    """The array of a tensor that is looked at inside a vmap, without cutting the program.

    Raises:
      RuntimeError: if it differs from example to example.
    """
    from .._peek import compute

    if innermost(t) is not None:
        if "bool" in reason:
            raise RuntimeError(CONTROL_FLOW)
        if reason in ("numpy()", "tolist()"):
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        raise RuntimeError(ITEM)
    return compute(t)


def spell(t: Any, plain: Any) -> str | None:
    """How a tensor prints inside a vmap; None if it is the same for all examples."""
    level = innermost(t)
    if level is None:
        return None
    after = running.levels[running.levels.index(level) :]
    before = local.look
    del running.levels[level.number - 1 :]
    local.look = look  # without a cut
    try:
        text = plain(level.whole(t))
    finally:
        running.levels += after
        local.look = before
    inner = "\n".join("    " + line for line in text.split("\n"))
    return f"BatchedTensor(lvl={level.number}, bdim=0, value=\n{inner}\n)"


def check_inplace(op: Op, t: Any, others: list[Any]) -> None:
    """Raise PyTorch's error for a write of something batched into something that is not."""
    for level in reversed(running.levels):
        if not level.region.intact() or level.batched(t):
            continue
        if op.random and level.randomness == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness. If this is necessary for your usage, please "
                "file an issue with functorch."
            )
        for x in others:
            if isinstance(x, Handle) and level.batched(x):
                if op.name in _POINTWISE:
                    shape = [level.size, *jnp.broadcast_shapes(tuple(t.shape), tuple(x.shape))]  # type: ignore[attr-defined]
                    raise RuntimeError(
                        f"output with shape {list(t.shape)} doesn't match the broadcast shape "
                        f"{shape}"
                    )
                raise RuntimeError(
                    "vmap: inplace arithmetic(self, *extra_args) is not possible because there "
                    "exists a Tensor `other` in extra_args that has more elements than `self`. "
                    "This happened due to `other` being vmapped over but `self` not being vmapped "
                    "over in a vmap. Please try to use out-of-place operators instead of inplace "
                    "arithmetic. If said operator is being called inside the PyTorch framework, "
                    "please file a bug report instead."
                )


def refuse(t: Any, message: str) -> None:
    """Raise this error if `t` differs from example to example."""
    if running.levels and innermost(t) is not None:
        raise RuntimeError(message)
