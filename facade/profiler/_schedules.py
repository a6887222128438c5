"""Kinds of events, and schedules that say in which steps a profiler records them."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .._core.jax_devices import list_gpus


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


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Return the kinds of events that are recorded: those of the CPU, and of GPUs if there are."""
    return {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if list_gpus() else [])}


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


def parse_activities(activities: Iterable[Any]) -> set[ProfilerActivity]:
    """Return the kinds of events in a list, in which a dict names some of a kind.

    Raises:
      ValueError: a kind stands there twice.
      TypeError: something else stands there.
    """
    found: set[ProfilerActivity] = set()
    for item in activities:
        if not isinstance(item, (ProfilerActivity, dict)):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for kind in item if isinstance(item, dict) else (item,):
            if kind in found:
                raise ValueError(f"Activity {kind} specified more than once")
            found.add(kind)
    return found
