"""Memory that is held: by parameters, gradients, optimizers' state, other tensors, and the rest."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax

from leafax.functional.execution.memory import OutOfMemoryError, spell_bytes

from .._core.handle import Handle
from .._tracing.bundles import Bundle
from .placing import followers

PARAMETERS, GRADIENTS, STATE, OTHERS, REST = (
    "parameters", "gradients", "optimizer state", "other tensors",
    "arrays of no tensor, as what backward needs",
)  # fmt: skip
_LEVELS = 8  # between an optimizer and a tensor of its state


class Held(NamedTuple):
    """The arrays of one kind.

    Attributes:
      kind: of those above.
      nbytes: what they take in this process, on all devices.
      arrays: how many there are.
    """

    kind: str
    nbytes: int
    arrays: int


def held_memory(device: Any = None) -> list[Held]:
    """Find out what holds memory, in the order of the kinds; views of one array count once.

    Args:
      device: a JAX device; None for all.
    """
    tensors = [x for x in gc.get_objects() if isinstance(x, (Handle, Bundle))]
    handles = [x for x in tensors if isinstance(x, Handle)]
    leaves = [t for t in handles if t._v.requires_grad and t._node is None and t._trace is None]
    gradients = [t._grad for t in handles if t._grad is not None]
    state = [a for t in tensors if isinstance(t, Bundle) for a in t.arrays or ()]
    for optimizer in list(followers):
        state += _arrays_of(_inside(optimizer, set(), _LEVELS))
    kinds: dict[str, Iterable[Any]] = {
        PARAMETERS: _arrays_of(leaves), GRADIENTS: _arrays_of(gradients), STATE: state,
        OTHERS: _arrays_of(handles), REST: jax.live_arrays(),
    }  # fmt: skip
    seen: set[int] = set()
    found = []
    for kind, arrays in kinds.items():
        sizes = []
        for array in arrays:
            if id(array) not in seen and not _is_gone(array):
                seen.add(id(array))
                if size := _nbytes(array, device):
                    sizes.append(size)
        if sizes:
            found.append(Held(kind, sum(sizes), len(sizes)))
    return found


def describe_held() -> str:
    """Describe in a sentence what holds memory."""
    kinds = [f"{spell_bytes(h.nbytes)} by {h.kind} ({h.arrays:,} arrays)" for h in held_memory()]
    return f"Held are {', '.join(kinds)}." if kinds else ""


def _arrays_of(tensors: Iterable[Any]) -> list[Any]:
    found = []
    for t in tensors:
        found.append(t._array)
        cell = getattr(t._store, "cell", None) if t._shares and t._viewed is None else None
        found.append(getattr(cell, "_array", None))
    return [array for array in found if array is not None]


def _inside(x: Any, seen: set[int], levels: int) -> Iterator[Any]:
    """Yield the tensors in an object of leafax's: in its fields, in containers there."""
    if isinstance(x, Handle):
        yield x
    elif levels and id(x) not in seen:
        seen.add(id(x))
        below: Iterable[Any] = ()
        if isinstance(x, dict):
            below = x.values()
        elif isinstance(x, (list, tuple)):
            below = x
        elif type(x).__module__.startswith("leafax.optim"):
            below = [y for name, y in getattr(x, "__dict__", {}).items() if name != "param_groups"]
        for y in below:
            yield from _inside(y, seen, levels - 1)


def _is_gone(array: Any) -> bool:
    return isinstance(array, jax.Array) and array.is_deleted()


def _nbytes(array: Any, device: Any) -> int:
    """Return the bytes of an array on a device, or on all of this process."""
    if not isinstance(array, jax.Array):
        platform = "cpu" if device is None else device.platform
        return int(array.nbytes) if platform == "cpu" and hasattr(array, "nbytes") else 0
    sharding = array.sharding
    devices = sharding.addressable_devices
    if device is not None:
        devices = devices & {device}
    each = math.prod(sharding.shard_shape(array.shape)) * array.dtype.itemsize
    return each * len(devices)


OutOfMemoryError.describe_held = staticmethod(describe_held)
