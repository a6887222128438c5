"""PyTorch's `torch.profiler.profiler`: a profiler that counts steps and has no events."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .._core.absent.stand_ins import do_nothing, refuse
from ..autograd.profiler import _INSTEAD, EventList, say_nothing_is_recorded

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """Kinds of events."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """Actions of a profiler in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def supported_activities() -> set[ProfilerActivity]:
    """Return the kinds of events that are recorded: none."""
    return set()


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """Make a profiler's schedule: after the first steps cycles of waiting, warming up, recording.

    Args:
      wait, warmup, active: the steps of each in a cycle.
      repeat: how many cycles there are; 0 for any number.
      skip_first: the steps before the first cycle.
      skip_first_wait: other than 0 if the first cycle does not wait.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
            f"warmup={warmup} (need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0)"
            f", skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        at = step % cycle
        if (repeat > 0 and step >= repeat * cycle) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:  # fmt: skip
    """Return a handler that writes no file: there are no events."""
    return do_nothing


class profile:  # noqa: N801 # PyTorch's name
    """Count the steps of a loop and call the handler by the schedule; there are no events.

    Args:
      activities: the kinds of events.
      schedule: what to do in a step, by its number; by default it records all.
      on_trace_ready: called with the profiler when a cycle of the schedule has ended.
      options: what else to record.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.activities = set(activities or ())
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self.current_action = self.schedule(0)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Say that nothing is recorded."""
        say_nothing_is_recorded()

    def stop(self) -> None:
        """Call the handler if the schedule is in a recording step."""
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._ready()

    def step(self) -> None:
        """Begin the next step."""
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._ready()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> EventList:
        """Return the events: an empty list."""
        return EventList()

    def key_averages(self, *args: Any, **options: Any) -> EventList:
        """Return the averages of the events: an empty list."""
        return EventList()

    add_metadata = add_metadata_json = toggle_collection_dynamic = do_nothing
    export_chrome_trace = refuse("profiler.profile.export_chrome_trace", _INSTEAD)
