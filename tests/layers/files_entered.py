"""List the files that a line of training enters: `python tests/layers/files_entered.py`.

Prints the list for the first turn of `y = x * w; y.sum().backward(); opt.step()`, and for the
turn when nothing is learnt any more. `docs/design.md` shows it.
"""

import os
import sys
from types import FrameType
from typing import Any

import leafax

STEADY = 6  # turns until nothing is learnt


def files_entered(turns: int) -> list[str]:
    """Return the library's files that the last of some turns enters, each once, in order.

    Args:
      turns: how often the line runs; the first turn of a process enters more than a later one.
    """
    roots = [os.path.realpath(str(p)) for p in (*leafax.__path__, *leafax.functional.__path__)]
    found: dict[str, None] = {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            name = os.path.realpath(frame.f_code.co_filename)
            for root in roots:
                if name.startswith(root + os.sep):
                    found[os.path.relpath(name, os.path.dirname(root))] = None

    x, w = leafax.ones(3), leafax.ones(3, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    for turn in range(turns):
        if turn == turns - 1:
            sys.setprofile(profile)
        y = x * w
        y.sum().backward()
        optimizer.step()
        sys.setprofile(None)
        optimizer.zero_grad()
        leafax.synchronize()
    return list(found)


if __name__ == "__main__":
    for title, turns in (("first", 1), ("steady", STEADY)):
        files = files_entered(turns)
        print(f"{title}: {len(files)} files")
        print("\n".join(f"  {name}" for name in files))
