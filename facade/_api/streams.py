"""Streams and events of devices: JAX orders what runs, so a stream is a name alone."""

from __future__ import annotations

import time
from typing import Any

from .._core.dtypes import device as device_class
from .._runtime.observation import synchronize


class Stream:
    """A queue of a device: all that leafax runs is in one order.

    Args:
      device: the device; by default the CPU.
      priority: accepted for PyTorch's sake.
    """

    stream_id = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = device_class("cpu" if device is None else device)

    @property
    def device_type(self) -> str:
        """Name the type of the device."""
        return str(self.device.type)

    device_index = property(lambda self: -1 if self.device.index is None else self.device.index)

    def query(self) -> bool:
        """Tell whether all is done: it is once it is waited for."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Run what is recorded and wait for it."""
        synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: there is one order."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: there is one order."""

    def record_event(self, event: Any = None) -> Any:
        """Record an event, by default a new one, and return it."""
        event = Event(self.device, enable_timing=True) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __repr__(self) -> str:
        where = f"device_type={self.device_type}, device_index={self.device_index}"
        return f"torch.Stream {where}, stream_id={self.stream_id}"


class Event:
    """A place in what runs, to measure times between two of them.

    Args:
      device: the device; by default the CPU.
      enable_timing: whether times are asked for; recording then waits for what is recorded.
    """

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False,
        interprocess: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self.device, self._timing = device_class("cpu" if device is None else device), enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Take the time once all that is recorded has run."""
        if self._timing:
            synchronize()
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Tell whether all before the event is done: it is."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Do nothing: there is one order."""

    def synchronize(self) -> None:
        """Run what is recorded and wait for it."""
        synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two events.

        Raises:
          ValueError: one of them was not made for times.
          RuntimeError: one of them is not recorded.
        """
        if not (self._timing and end_event._timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )  # fmt: skip
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3


class StreamContext:
    """A block that is to run in a stream; there is one order, so it changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """Return a block that is to run in a stream: there is one order."""
    return StreamContext(stream)
