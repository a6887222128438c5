"""Attributes of modules by their paths."""

from __future__ import annotations

from typing import Any

from .._core.handle import Handle
from ..nn.modules.module import Module
from ..nn.parameter import Parameter


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module what another has at a path, with empty modules on the way."""
    *prefix, name = target.split(".")
    for item in prefix:
        source, to = getattr(from_module, item), getattr(to_module, item, None)
        if source is to:  # what is in it is there
            return
        if to is None:
            to = Module()
            setattr(to_module, item, to)
        from_module, to_module = source, to
    _put(to_module, name, getattr(from_module, name))


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Give a module an object at a path, with empty modules on the way."""
    *prefix, name = target.split(".")
    for item in prefix:
        if getattr(to_module, item, None) is None:
            setattr(to_module, item, Module())
        to_module = getattr(to_module, item)
    _put(to_module, name, from_obj)


def _put(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Handle) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _get_attr(model: Any, attr_name: str) -> Any:
    for item in attr_name.split("."):
        model = getattr(model, item)
    return model


def _del_attr(model: Any, attr_name: str) -> None:
    *prefix, name = attr_name.split(".")
    delattr(_get_attr(model, ".".join(prefix)) if prefix else model, name)


def _has_attr(model: Any, attr_name: str) -> bool:
    for item in attr_name.split("."):
        if not hasattr(model, item):
            return False
        model = getattr(model, item)
    return True
