"""Classes that modules get when a tensor of theirs is parametrized."""

from __future__ import annotations

import copyreg
from copy import deepcopy
from typing import Any

_NOT_PICKLED = (
    "Serialization of parametrized modules is only supported through state_dict(). See:\n"
    "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
)

_cache_enabled = 0  # how many `cached()` are open
_cache: dict[tuple[int, str], Any] = {}


def begin_caching() -> None:
    """Keep the values of parametrized tensors from now on."""
    global _cache_enabled
    _cache_enabled += 1


def end_caching() -> None:
    """Forget the kept values, unless caching was begun more often than ended."""
    global _cache_enabled
    _cache_enabled -= 1
    if not _cache_enabled:
        _cache.clear()


def inject_class(module: Any) -> None:
    """Give a module a class of its own, which properties can be put into."""
    kind = type(module)
    methods: dict[str, Any] = {"__getstate__": _refuse_state}
    if not hasattr(kind, "__deepcopy__"):
        methods["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), methods)


def _refuse_state(self: Any) -> Any:
    raise RuntimeError(_NOT_PICKLED)


def _deepcopy(self: Any, memo: Any) -> Any:
    """Copy a module without its `__getstate__`, which refuses."""
    made = memo.get(id(self))
    if made is not None:
        return made
    made = memo[id(self)] = self.__new__(type(self))
    made.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(made, slot, deepcopy(getattr(self, slot), memo))
    return made


def inject_property(module: Any, tensor_name: str) -> None:
    """Make a module compute a tensor when it is read, and the originals when it is assigned."""
    if hasattr(module, tensor_name):
        raise AssertionError(f"Module already has an attribute named '{tensor_name}'")
    owner = id(module)

    def read(self: Any) -> Any:
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = owner, tensor_name
        kept = _cache.get(key)
        if kept is None:
            kept = _cache[key] = parametrization()
        return kept

    def assign(self: Any, value: Any) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(read, assign))
