"""Functions and classes whose calls with proxies are nodes of their own."""

from __future__ import annotations

import inspect
from typing import Any

from ._patcher import find_proxy

_proxyable_classes: dict[type, None] = {}
# Names that `wrap` was told, with the dicts of the modules that told them.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}


class ProxyableClassMeta(type):
    """A metaclass of classes whose construction from proxies is a node."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)  # type: ignore[call-overload]
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
            return made
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


def wrap(fn_or_name: Any) -> Any:
    """Make calls of a function of this module nodes of their own; a decorator, or by its name.

    Raises:
      NotImplementedError: it is not called at a module's top level.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


wrap.__module__ = "leafax.fx._symbolic_trace"  # which code of graphs names
