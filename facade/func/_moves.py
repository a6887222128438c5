"""Moves between devices inside of `vmap`: a mapped op runs on one device.

What an example was moved to becomes a batch of its own, so that the steps are mapped as one op for
each device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leafax.functional.lowering.jvp import JvpCall
from leafax.functional.program.op import TABLE
from leafax.functional.program.program import Call

from .._core.grad_modes import enable_grad, no_grad
from .._core.jax_devices import places
from .._core.trie import State, local
from .._dispatch.record import apply
from .._storage.enter import enter
from .._tracing.inputs import make

if TYPE_CHECKING:
    from ._level import Level

_Map = Callable[[list[Any], list[Any], bool], list[Any]]


def has_moves(level: Level) -> bool:
    """Tell if an example was moved to a device among the steps of a running `vmap`."""
    return places.matter and any(_target(s) is not None for s in level.region.steps())


def map_by_device(level: Level, outs: list[Any], out_dims: list[Any], mapped: _Map) -> list[Any]:
    """Map the steps so far, each on the device where it was recorded.

    Args:
      mapped: records the steps as one op, of those batches alone that it depends on.
    """
    for o in outs:
        level.is_batched(o)
    for step in level.region.steps():
        if _target(step) is None:
            continue
        value = step.values[0]
        if value in level.holes or not level.is_value_batched(value):
            continue
        source = make(step.operands[-1], level.region.trace)  # of a derivative the tangent
        (whole,) = mapped([source], [0], True)
        with enable_grad() if value.requires_grad else no_grad():
            whole = apply(TABLE["_to_copy"], whole, value.dtype, None, _target(step))
        level.mapped.append((whole, 0))
        level.holes.append(value)
    by_device: dict[Any, list[int]] = {}
    for k, o in enumerate(outs):
        by_device.setdefault(enter(o, local.trace).device, []).append(k)
    found = [None] * len(outs)
    for numbers in by_device.values():
        made = mapped([outs[k] for k in numbers], [out_dims[k] for k in numbers], True)
        for k, whole in zip(numbers, made, strict=True):
            found[k] = whole
    return found


def _target(step: State) -> Any:
    """Return the device that a step moves to; None if it moves nothing."""
    call: Any = step.call
    inner = call.call if type(call) is JvpCall else call
    if type(inner) is not Call or inner.op.name != "_to_copy":
        return None
    return inner.arguments.get("device")
