"""Containers of samples, made anew with other contents."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, Sequence
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
