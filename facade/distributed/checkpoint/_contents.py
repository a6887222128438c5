"""State dicts as flat arrays: tensors by their path, other values pickled."""

from __future__ import annotations

import io
from collections.abc import Iterator, MutableMapping
from typing import Any

import jax
import numpy as np

from ..._core.handle import Handle
from ...serialization import load, save

Place = tuple[Any, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield what a state dict holds, with its keys: dicts are entered, and lists with tensors."""
    if isinstance(value, MutableMapping):
        for key, held in value.items():
            yield from leaves(held, (*place, key))
    elif isinstance(value, (list, tuple)) and any(isinstance(x, Handle) for x in _within(value)):
        for i, held in enumerate(value):
            yield from leaves(held, (*place, i))
    else:
        yield place, value


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, MutableMapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for held in value:
            yield from _within(held)
    else:
        yield value


def name_of(place: Place) -> str:
    return ".".join(map(str, place))


def state_of(value: Any) -> Any:
    """Return the state dict of something that has one, or the value itself."""
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        return value.state_dict()
    return value


def array_of(value: Any) -> jax.Array | None:
    """Return a tensor's array; None for what is pickled."""
    if not isinstance(value, Handle):
        return None
    t: Any = value
    found: jax.Array = t.detach().jax()
    return found if found.size else None  # orbax has no arrays without elements


def pickled(value: Any) -> np.ndarray[Any, Any]:
    buffer = io.BytesIO()
    save(value, buffer)
    return np.frombuffer(buffer.getvalue(), np.uint8).copy()


def unpickled(array: Any) -> Any:
    """Undo `pickled`. It runs code that the checkpoint names, as PyTorch's does."""
    return load(io.BytesIO(np.asarray(array).tobytes()), weights_only=False)


def put(state: Any, place: Place, value: Any) -> Any:
    """Set what stands at a place, and return the state: another one where it is a tuple."""
    if not place:
        return value
    held = put(state[place[0]], place[1:], value)
    if held is not state[place[0]]:
        if isinstance(state, tuple):
            return (*state[: place[0]], held, *state[place[0] + 1 :])
        state[place[0]] = held
    return state
