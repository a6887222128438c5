"""Run one script with torch and with leafax, and compare what it said: texts, errors, warnings."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import torch

import leafax


class Said:
    """The lines that a script noted, with leafax's name replaced by torch's."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.lines = lib, list[str]()

    def __call__(self, *things: Any) -> None:
        for x in things:
            text = str(x.tolist() if isinstance(x, self.lib.Tensor) else x)
            self.lines.append(re.sub(r"0x[0-9a-f]+", "0x", text).replace("leafax", "torch"))

    def refused(self, *calls: Callable[[], Any]) -> None:
        """Note the errors of calls, or that there was none."""
        for call in calls:
            try:
                call()
            except Exception as error:
                self(f"{type(error).__name__}: {error}")
            else:
                self("no error")


def agree(script: Callable[[Any, Said], None]) -> None:
    """Run `script(library, said)` twice; both are to say the same, warnings included."""
    both = []
    for lib in (torch, leafax):
        said = Said(lib)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            script(lib, said)
        seen = [w for w in caught if "torch.jit" not in str(w.message)]  # of torch's own calls
        said(*(f"{w.category.__name__}: {w.message}" for w in seen))
        both.append(said.lines)
    differ = [pair for pair in zip_longest(*both) if pair[0] != pair[1]]
    assert not differ, "\n".join(f"torch:  {ref}\nleafax: {own}" for ref, own in differ)
