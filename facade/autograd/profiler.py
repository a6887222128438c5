"""PyTorch's `torch.autograd.profiler`: blocks that may be entered, and that record nothing."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import Block, refuse
from .._core.warn_once import warn_once

__all__ = [
    "EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "kineto_available", "profile",
    "record_function",
]  # fmt: skip

_INSTEAD = "`leafax.explain()` tells what ran, `jax.profiler` for how long"


def say_nothing_is_recorded() -> None:
    """Warn, once in a process, that profilers have no events."""
    warn_once(f"leafax's profiler records nothing: {_INSTEAD}")


class FunctionEvent:
    """An op that a profiler recorded: there is none."""


class EventList(list[Any]):
    """The events of a profiler: an empty list."""

    def table(self, *args: Any, **options: Any) -> str:
        """Return the text of a table, which says where to look instead."""
        return f"no events: {_INSTEAD}"

    def __str__(self) -> str:
        return self.table()

    def key_averages(self, *args: Any, **options: Any) -> EventList:
        """Return the averages of the events: an empty list."""
        return EventList()

    def total_average(self) -> EventList:
        """Return the average of all events: an empty list."""
        return EventList()

    export_chrome_trace = refuse("profiler.profile.export_chrome_trace", _INSTEAD)
    export_stacks = refuse("profiler.profile.export_stacks", _INSTEAD)


class record_function(Block):  # noqa: N801 # PyTorch's name
    """Name a block for a profiler.

    Args:
      name: its name.
      args: what else to say of it.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args


class emit_nvtx(Block):  # noqa: N801 # PyTorch's name
    """Mark a block for NVIDIA's profiler: XLA does so by itself."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes


class emit_itt(emit_nvtx):  # noqa: N801 # PyTorch's name
    """Mark a block for Intel's profiler: nothing does."""


class profile(Block):  # noqa: N801 # PyTorch's name
    """Profile a block: it has no events."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        self.enabled, self.function_events = enabled, EventList()

    def __enter__(self) -> profile:
        if self.enabled:
            say_nothing_is_recorded()
        return self

    def table(self, *args: Any, **options: Any) -> str:
        """Return the text of a table, which says where to look instead."""
        return self.function_events.table()

    def key_averages(self, *args: Any, **options: Any) -> EventList:
        """Return the averages of the events: an empty list."""
        return self.function_events

    total_average = key_averages
    export_chrome_trace = refuse("autograd.profiler.profile.export_chrome_trace", _INSTEAD)


def kineto_available() -> bool:
    """Return False: PyTorch's profiler is not there."""
    return False
