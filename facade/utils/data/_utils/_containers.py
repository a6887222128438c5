"""Containers of samples, made anew with other contents."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any


def rebuilt_mapping(like: Mapping[Any, Any], content: dict[Any, Any]) -> Any:
    """Return a mapping of the type of `like`, with what else that holds, and this content."""
    if type(like) is dict:
        return content
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(content)
            return clone
        return type(like)(content)  # type: ignore[call-arg]
    except TypeError:  # it cannot be copied, or is made of something else
        return content


def rebuilt_sequence(like: Sequence[Any], content: Iterable[Any]) -> Any:
    """Return a sequence of the type of `like`, with what else that holds, and this content."""
    found = list(content)
    if type(like) is list:
        return found
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(found):
                clone[i] = item
            return clone
        return type(like)(found)  # type: ignore[call-arg]
    except TypeError:  # it cannot be copied or written to, or is made of something else
        return found


def map_leaves(fn: Callable[[Any], Any], data: Any, method: str) -> Any:
    """Return a batch in which `fn` has replaced whatever has a method of some name."""
    if hasattr(data, method):
        return fn(data)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return rebuilt_mapping(data, {k: map_leaves(fn, x, method) for k, x in data.items()})
    if isinstance(data, tuple):
        found = [map_leaves(fn, x, method) for x in data]
        return type(data)(*found) if hasattr(data, "_fields") else type(data)(found)
    if isinstance(data, Sequence):
        return rebuilt_sequence(data, [map_leaves(fn, x, method) for x in data])
    return data
