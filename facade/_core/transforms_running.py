"""Transforms of `leafax.func` that are being recorded in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEAF_WRITE = "a leaf Variable that requires grad is being used in an in-place operation."


class _Active(threading.local):
    """Count a thread's running transforms.

    Attributes:
      depth: how many run.
      differentiating: how many of them take derivatives.
      arguments: those that are leaves to the transform but have a history outside of it.
      pulling: gradients are being taken for a transform.
      leaves: those made while the innermost that takes derivatives runs: it ends with them.
    """

    depth = 0
    differentiating = 0
    arguments: tuple[Any, ...] = ()
    pulling = False
    leaves: tuple[Any, ...] = ()


active = _Active()


@contextmanager
def running_transform(*arguments: Any, differentiates: bool = True) -> Iterator[None]:
    """Run the block, which calls a transformed function: some things are forbidden in it.

    Args:
      arguments: those that are leaves to the transform but have a history outside of it.
    """
    before, leaves = active.arguments, active.leaves
    active.depth += 1
    active.differentiating += differentiates
    active.arguments = (*before, *arguments)
    if differentiates:
        active.leaves = ()
    try:
        yield
    finally:
        active.depth -= 1
        active.differentiating -= differentiates
        active.arguments = before
        if differentiates:
            for t in active.leaves:
                t._ended = True
            active.leaves = leaves


@contextmanager
def taking_gradients() -> Iterator[None]:
    """Run the block, which takes gradients for a transform."""
    before, active.pulling = active.pulling, True
    try:
        yield
    finally:
        active.pulling = before


@contextmanager
def allowing_all() -> Iterator[None]:
    """Allow all again within the block: `autograd.functional` may use transforms."""
    before, active.depth = active.depth, 0
    try:
        yield
    finally:
        active.depth = before


def refuse_argument_write(t: Any) -> None:
    """Raise PyTorch's error if autograd would see a write to an argument of a transform."""
    for own in reversed(active.arguments):
        if own is t:
            raise RuntimeError(LEAF_WRITE)
        if is_view_of(t, own):
            raise RuntimeError("a view of " + LEAF_WRITE)


def is_view_of(t: Any, own: Any) -> bool:
    """Tell if autograd takes `t` for a view of `own`."""
    shares = t._shares and own._shares and t._tracked
    return bool(shares and t._base_ is not None and t._store is own._store)
