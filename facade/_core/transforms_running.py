"""How many transforms of `leafax.func` are being recorded in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Active(threading.local):
    """`differentiating` is how many of them take derivatives.

    `arguments` are those that are leaves to the transform but have a history outside of it.

    `pulling` says that gradients are taken for a transform.

    `leaves` are those made while the innermost that takes derivatives runs: it ends with them.
    """

    depth = 0
    differentiating = 0
    arguments: tuple[Any, ...] = ()
    pulling = False
    leaves: tuple[Any, ...] = ()


active = _Active()


@contextmanager
def transform(*arguments: Any, differentiates: bool = True) -> Iterator[None]:
    """While a transformed function is called: some things are forbidden then."""
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
def pulling() -> Iterator[None]:
    """While gradients are taken for a transform."""
    before, active.pulling = active.pulling, True
    try:
        yield
    finally:
        active.pulling = before


@contextmanager
def allowed() -> Iterator[None]:
    """Within the block all is allowed again: `autograd.functional` may use transforms."""
    before, active.depth = active.depth, 0
    try:
        yield
    finally:
        active.depth = before
