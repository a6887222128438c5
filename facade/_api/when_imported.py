"""Changes to modules of others, as soon as those are imported.

What is imported already is changed at once, else when it has run: a finder on `sys.meta_path` waits
for that name alone and leaves when it has come.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class _Finder:
    """Finds one module as Python does, and calls a function when it has run."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self.name, self.act = name, act

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                self.act(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def when_imported(name: str, act: Callable[[ModuleType], None]) -> Any:
    """Call `act(module)` for a module of that name, now or as soon as it is imported.

    Returns:
      The finder that waits on `sys.meta_path`, None if the module is there.
    """
    if name in sys.modules:
        act(sys.modules[name])
        return None
    finder: Any = _Finder(name, act)
    sys.meta_path.insert(0, finder)
    return finder
