"""Names in graphs: unique ones for values, and those of functions and types in code."""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from .._api.overridable import IN_CPP, IN_NN, names
from .._ops.calls.aten_names import OpOverload, OpOverloadPacket

#: Objects that code may name without being given them.
CUSTOM_BUILTINS: dict[str, tuple[str, Any]] = {
    "inf": ("from math import inf", math.inf), "nan": ("from math import nan", math.nan),
    "NoneType": ("NoneType = type(None)", type(None)), "torch": ("import torch", None),
    "device": ("from torch import device", None),
    "fx_pytree": ("import torch.fx._pytree as fx_pytree", None),
    "pytree": ("import torch.utils._pytree as pytree", None),
}  # fmt: skip
_ILLEGAL: dict[str, Any] = {
    **{word: object() for word in keyword.kwlist}, **vars(builtins),
    **{name: found for name, (_, found) in CUSTOM_BUILTINS.items()},
}  # fmt: skip
_NAME = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")


class Namespace:
    """Names of which each is given once, and none hides a builtin."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Make a name like the candidate, which the object has from then on if it is not None."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = _NAME.match(candidate)
        assert found is not None
        base, number = found.groups()
        if number is None or candidate in self._used_names:
            count = self._base_count.get(base, 0)
            if _ILLEGAL.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self._used_names:
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note that an object has a name that was made for it."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def rename(self, obj: Any, name: str) -> None:
        """Give an object another name."""
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def snake_case(text: str) -> str:
    """Write a name of capitals with underscores."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


def is_magic(name: str) -> bool:
    """Tell whether a name has two underscores at either end."""
    return name.startswith("__") and name.endswith("__")


def public_name(obj: Any) -> str | None:
    """Return PyTorch's name of one of its functions or classes, None of any other object."""
    if isinstance(obj, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{obj}"
    try:
        found = names().get(obj)
    except TypeError:
        return None
    module = getattr(obj, "__module__", None) or ""
    named: Any = obj
    if found is None and isinstance(obj, type) and module.partition(".")[0] == "leafax":
        return f"torch{module[6:]}.{obj.__qualname__}"
    if found is None and isinstance(obj, types.FunctionType) and module.startswith("leafax"):
        name = named.__name__
        if getattr(sys.modules["leafax"], name, None) is obj:
            return f"torch.{name}"
        if getattr(sys.modules.get(module), name, None) is obj:
            return f"torch{module[6:]}.{name}"
    return found


def qualified_name(func: Callable[..., Any]) -> str:
    """Return the name of a function, with its module.

    Raises:
      RuntimeError: it is a lambda whose source is not at hand.
    """
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    public = public_name(func)
    if public is not None:
        return _home(public, name)
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as e:
            raise RuntimeError("Unable to represent lambda") from e
    return f"{func.__module__}.{name}"


def _home(public: str, name: str) -> str:
    """Return where PyTorch's functions of C++ say that they are from."""
    if public == f"torch.nn.functional.{name}" and name in IN_CPP:
        if name not in IN_NN and hasattr(sys.modules["leafax"], name):
            return f"torch.{name}"
        return f"torch._C._nn.{name}" if name in IN_NN and name != "logsigmoid" else public
    return public


def type_repr(obj: Any) -> str:
    """Return the name of a type as code has it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return public_name(obj) or f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)
