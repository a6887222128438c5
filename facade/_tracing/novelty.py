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

#: True once the main thread's last passes were not all known; empty before. So that other files
#: can ask at no cost, both of these are changed in place.
watched: list[bool] = []
unrepeated: list[bool] = []  # True while new passes prevail by far


class _Passes:
    """Memory of the main thread's backward passes.

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


def _is_main() -> bool:
    """Tell whether this is the main thread: others share tensors under locks, and are recorded."""
    return threading.get_ident() == _MAIN


def note_new() -> None:
    """Note a pass through a graph that was never met."""
    if not _is_main():
        return
    line = user_line()
    if line != _passes.line:
        _passes.line, _passes.prevail = line, 0
    _set(min(ALWAYS, _passes.prevail + 1))


def note_met() -> None:
    """Note a pass through a graph that was met before."""
    if _is_main():
        _set(max(0, _passes.prevail - 1))


def note(key: Any) -> None:
    """Note a pass with this key, which is remembered here alone."""
    if not _is_main():
        return
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
    return bool(unrepeated) and _is_main() and local.cuts.at_once


@contextmanager
def unaware() -> Iterator[None]:
    """Record in the block as in any other loop."""
    before = unrepeated[:]
    unrepeated.clear()
    try:
        yield
    finally:
        unrepeated[:] = before


def forget_passes() -> None:
    """Forget what the main thread's loops did."""
    _passes.met.clear()
    _passes.line = None
    _set(0)


def _set(prevail: int) -> None:
    _passes.prevail = prevail
    watched[:] = [True] * bool(prevail)
    if prevail != MOSTLY:  # between the two it stays as it is
        unrepeated[:] = [True] * (prevail > MOSTLY)
