"""Functions and methods that are replaced while a graph is traced."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from typing import Any

from .node import map_aggregate
from .proxy import Proxy

_MARK = "__fx_already_patched"


class Patcher:
    """Puts other functions into modules and classes until its `with` block ends."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replace a name of a module's dict, or hide a builtin."""
        setattr(new_fn, _MARK, deduplicate)
        if name not in frame_dict and hasattr(builtins, name):
            self._undo.append(lambda: frame_dict.pop(name))
        elif getattr(frame_dict[name], _MARK, False):
            return
        else:
            old = frame_dict[name]
            self._undo.append(lambda: frame_dict.__setitem__(name, old))
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class."""
        setattr(new_fn, _MARK, deduplicate)
        own, old = name in vars(cls), getattr(cls, name)
        if getattr(old, _MARK, False):
            return
        self._undo.append(lambda: setattr(cls, name, old) if own else delattr(cls, name))
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Tell whether an object was not asked about before."""
        known = id(thing) in self._visited
        self._visited.add(id(thing))
        return not known

    def wrap_listed(self, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
        """Make calls of some functions that a module's dict holds nodes of their own."""
        if self.visit_once(frame_dict):
            for name, value in list(frame_dict.items()):
                if not name.startswith("_") and callable(value) and id(value) in function_ids:
                    self.patch(frame_dict, name, wrapped_function(value))

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._undo:
            self._undo.pop()()
        self._visited.clear()


def find_proxy(*objects: Any) -> Proxy | None:
    """Return a proxy among objects, None if there is none."""
    found: list[Proxy] = []

    def look(x: Any) -> Any:
        if isinstance(x, Proxy):
            found.append(x)
        return x

    map_aggregate(objects, look)
    return found[-1] if found else None


def wrapped_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose call with a proxy is a node of its own."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call
