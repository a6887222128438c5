"""Checks for ops that a running `vmap` restricts; outside of one they cost a look at a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .trie import local


def refuse_in_vmap(op: str, *tensors: Any) -> None:
    """Raise PyTorch's error for `op` if one of the tensors differs between examples."""
    if local.vmap is not None:
        local.vmap.refuse(op, tensors)


def refuse_statistics(input: Any, *buffers: Any) -> None:
    """Raise PyTorch's error if all examples share running statistics and `input` differs."""
    if local.vmap is not None:
        local.vmap.refuse_statistics(input, buffers)


def refuse_random() -> None:
    """Raise PyTorch's error for a random op while a `vmap` is running that allows none."""
    if local.vmap is not None:
        local.vmap.refuse_random()


def refuse_random_out() -> None:
    """Raise PyTorch's error for a random op that writes into `out=` while a `vmap` is running."""
    if local.vmap is not None:
        local.vmap.refuse_random_out()


def differs_in_vmap(*given: Any) -> bool:
    """Tell if a `vmap` is running that one of the tensors among these differs in."""
    return local.vmap is not None and local.vmap.differs(*given)


def hides_grad(t: Any) -> bool:
    """Tell if PyTorch says of an example of a `vmap` that it requires no grad."""
    return local.vmap is not None and local.vmap.hides_grad(t)


def loop_over_examples(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `fn` on one example of the running `vmap` after the other, and stack its results."""
    assert local.vmap is not None
    return local.vmap.loop(fn, args, kwargs)


def adopt_example(like: Any, made: Any) -> Any:
    """Count a new tensor as an example of the running `vmap` if `like` is one; return it.

    So it may be written to as `like` may.
    """
    if local.vmap is not None:
        local.vmap.adopt(like, made)
    return made


@contextmanager
def outside_vmap() -> Iterator[None]:
    """Take the examples of a running `vmap` within the block for tensors like others."""
    before, local.vmap = local.vmap, None
    try:
        yield
    finally:
        local.vmap = before
