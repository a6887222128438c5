"""State dicts as arrays and JSON: nothing that runs code when it is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np

import leafax

_PLAIN = (bool, int, float, str, type(None))


def pack(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """Pack a state dict into what JSON can hold; its tensors go to `arrays`.

    Raises:
      TypeError: something that is neither a number, a string, a tensor nor a container of them.
    """
    if isinstance(value, leafax.Tensor):
        array = value.detach().jax()
        if not array.size:  # orbax has none without elements
            return {"empty": [list(array.shape), str(array.dtype)]}
        arrays[name] = array
        return {"array": name}
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        arrays[name] = np.asarray(value)
        return {"array": name}
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {kind: [[pack(k, arrays, name), pack(v, arrays, f"{name}/{k}")]
                       for k, v in value.items()]}  # fmt: skip
    if type(value) in (list, tuple, set):
        items = [pack(v, arrays, f"{name}/{i}") for i, v in enumerate(value)]
        return {type(value).__name__: items}
    raise TypeError(
        f"cannot save `{name}`: a {type(value).__name__} is neither a number, a string, a tensor "
        f"nor a container of them"
    )


def unpack(value: Any, arrays: dict[str, Any]) -> Any:
    """Undo `pack`."""
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "array":
        return leafax.as_tensor(arrays[held])
    if kind == "empty":
        return leafax.as_tensor(np.zeros(held[0], jax.numpy.dtype(held[1])))
    if kind in ("dict", "counter"):
        made = {_key(k, arrays): unpack(v, arrays) for k, v in held}
        return Counter(made) if kind == "counter" else made
    return {"list": list, "tuple": tuple, "set": set}[kind](unpack(v, arrays) for v in held)


def _key(key: Any, arrays: dict[str, Any]) -> Any:
    return unpack(key, arrays) if isinstance(key, dict) else key
