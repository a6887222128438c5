"""Memory mappings of the process: XLA crashes when Linux refuses it another one.

A compiled program takes six to eight memory mappings, and Linux allows a process 65,530 unless its
administrator says otherwise. A program that is never met again (a shape that comes once, a
number in a name) is held all the same, so who holds programs must let go of some in time.
"""

from __future__ import annotations

import itertools

_EVERY = 256  # compilations between two looks: to count takes milliseconds
_compilations = itertools.count(1)


def too_many() -> bool:
    """Return True if half of the mappings are taken, by a look now and then, not at each call."""
    if next(_compilations) % _EVERY:
        return False
    used, allowed = mappings()
    return used > allowed // 2


def mappings() -> tuple[int, int]:
    """Return how many memory mappings the process has and may have; `(0, 1)` if unknown."""
    try:
        with open("/proc/sys/vm/max_map_count") as limit, open("/proc/self/maps") as lines:
            return sum(1 for _ in lines), int(limit.read())
    except OSError:
        return 0, 1
