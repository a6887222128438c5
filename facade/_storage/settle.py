"""Settling views: working out the storage that they share, once somebody asks for it."""

from __future__ import annotations

from typing import Any
from weakref import ref

from .._core.handle import Shared
from .._core.locks import sharing
from .._core.pieces import read_of
from .._core.trie import Trace
from .pending_views import is_unsettled
from .shared_storage import share


def settle(t: Any) -> None:
    """Give `t`, and all that view the same tensor, the storage that they share."""
    with sharing:
        if t._viewed is not None or t._viewers is not None:  # no other thread was here before
            _settle(t)


def _settle(t: Any) -> None:
    root = t if t._viewed is None else t._viewed[0]
    if type(root) is ref:
        root = root()
        if root is None:  # what was detached is gone, and with it all that it shared with
            t._viewed, t._shares = None, False
            return
    viewers, root._viewers = root._viewers, None
    root._shares = False  # unless a viewer is still alive
    alive = [out for viewer in viewers if (out := viewer()) is not None]
    if not alive:
        return
    for out in alive:
        (_, lens), out._viewed = out._viewed, None
        if lens is None:
            share(root, out, (), view=False)
            continue
        share(root, out, lens, view=True, read=read_of(lens))
        out._blens = tuple(out._blens)  # whatever is asked of views that are made now


def settle_all(trace: Trace) -> None:
    """Settle the views in `trace` that are still alive."""
    for r in list(trace.refs):
        t = r()
        if t is not None and is_unsettled(t):
            settle(t)


Shared.settle = staticmethod(settle)
