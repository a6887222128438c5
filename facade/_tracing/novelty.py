"""Loops that never do the same twice, as their backward passes tell.

Where new graphs prevail among the last ones that `backward()` met at one line, the main thread's
ops on small data on the host are computed at once, with their graph: what never comes again is
neither worth a place in the trie nor a program. `_autograd` computes them, and installs itself as
`Doers`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._core.trie import local
from .user_lines import user_line

MOSTLY, ALWAYS = 4, 8  # by how many more new passes there were than others, of late
_MAIN = threading.main_thread().ident
_MOST_MET = 4096  # passes that are remembered as met

watched: set[int] = set()  # threads whose last passes were not all known
unrepeated: set[int] = set()  # those in which new passes prevail by far


class _Passes(threading.local):
    """Memory of a thread's backward passes.

    Attributes:
      met: marks of passes that nothing else remembers, and how often they were met.
      prevail: by how many more new ones there were at this line than others, of late.
      line: where the last new ones were.
    """

    def __init__(self) -> None:
        self.met: dict[int, int] = {}
        self.prevail = 0
        self.line: Any = None


_passes = _Passes()


class Doers:
    """The functions that compute at once with a graph, or return None; `_autograd` provides them.

    Attributes:
      call: computes a call of a public function that `known_calls.py` has a key of.
      op: computes an op.
    """

    call: Callable[..., Any]
    op: Callable[..., Any]


def note_new() -> None:
    """Note a pass through a graph that was never met."""
    line = user_line()
    if line != _passes.line:
        _passes.line, _passes.prevail = line, 0
    _set(min(ALWAYS, _passes.prevail + 1))


def note_met() -> None:
    """Note a pass through a graph that was met before."""
    _set(max(0, _passes.prevail - 1))


def note(key: Any) -> None:
    """Note a pass with this key, which is remembered here alone."""
    mark, met = hash(key), _passes.met
    times = met.get(mark, 0)
    if not times and len(met) >= _MOST_MET:
        met.clear()
    met[mark] = times + 1
    if not times:
        note_new()
    elif times > 1:  # lengths come twice, and a loop's body thrice
        note_met()


def is_unrepeated() -> bool:
    """Return whether the thread's loop hardly ever does the same twice, and may be so computed."""
    return threading.get_ident() in unrepeated and local.cuts.at_once


@contextmanager
def unaware() -> Iterator[None]:
    """Record in the block as in any other loop."""
    me = threading.get_ident()
    known = me in unrepeated
    unrepeated.discard(me)
    try:
        yield
    finally:
        if known:
            unrepeated.add(me)


def forget_passes() -> None:
    """Forget what the thread's loops did."""
    _passes.met.clear()
    _passes.line = None
    _set(0)


def _set(prevail: int) -> None:
    _passes.prevail = prevail
    me = threading.get_ident()
    if me != _MAIN:  # threads that train beside it share tensors under locks, and are recorded
        return
    if prevail:
        watched.add(me)
    else:
        watched.discard(me)
    if prevail > MOSTLY:
        unrepeated.add(me)
    elif prevail < MOSTLY:
        unrepeated.discard(me)
