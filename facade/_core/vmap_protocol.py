"""What the facade asks of a running `vmap`; outside of one it costs a look at a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .handle import Handle
from .transforms_running import active
from .trie import local


def refuse(op: str, *tensors: Any) -> None:
    """Raise PyTorch's error if a `vmap` is running that one of these differs in."""
    if local.look is not None:
        from ..func._refusals import refuse_op

        refuse_op(op, tensors)


def refuse_statistics(input: Any, *buffers: Any) -> None:
    """Raise PyTorch's error if running statistics are one for all examples, `input` is not."""
    if local.look is not None:
        from ..func._refusals import differs_alone

        if differs_alone(input, buffers):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, "
                "which will be updated in place, were not batched.\nIf you are using a module and "
                "do not need eval mode, please set `track_running_stats` to be False.If you are "
                "using a prebuilt module and do not need eval mode, please see the functorch "
                "website for resources on how to patch your module to work with vmap"
            )


def refuse_random() -> None:
    """Raise PyTorch's error for a random op while a `vmap` is running that allows none."""
    if local.look is not None:
        from ..func._levels import running

        for level in reversed(running.levels):
            if level.randomness == "error" and level.region.intact():
                raise RuntimeError(level.refusal_of_random)


def refuse_random_out() -> None:
    """Raise PyTorch's error for a random op that writes into `out=` while a `vmap` is running."""
    if local.look is not None:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside of vmap. "
            "Please use non-out variants as a workaround"
        )


def differ(*given: Any) -> bool:
    """Whether a `vmap` is running that one of the tensors among these differs in."""
    if local.look is None:
        return False
    from ..func._levels import innermost

    return any(innermost(t) is not None for t in given if isinstance(t, Handle))


def looped(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `fn`, a function of values, gives for one example after the other, put together."""
    from ..func._loops import loop

    return loop(fn, args, kwargs)


def hides_grad(t: Any) -> bool:
    """Whether PyTorch would say of an example that it requires no grad: its batch does."""
    if not differ(t):
        return False
    from ..func._levels import running

    return active.differentiating == running.levels[-1].differentiating
