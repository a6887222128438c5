"""Streams and events of devices: JAX orders what runs, so a stream is a name alone."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from .._core.dtypes import device as device_class
from .._runtime.observation import synchronize

_numbers = itertools.count(1)


class _Entered(threading.local):
    """The streams that this thread has entered, by their devices."""

    def __init__(self) -> None:
        self.streams: dict[Any, Any] = {}


_entered = _Entered()


def entered_stream(device: Any) -> Any:
    """Return the stream that this thread has entered on a device; None for the default one."""
    return _entered.streams.get(device)


def enter_stream(stream: Any) -> None:
    """Make a stream its device's current one, in name."""
    _entered.streams[stream.device] = stream


class Stream:
    """A queue of a device: all that leafax runs is in one order.

    Args:
      device: the device; by default the CPU.
      priority: accepted for PyTorch's sake.

    Attributes:
      stream_id: its number; 0 is the default stream's.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = device_class("cpu" if device is None else device)
        self.priority = priority
        number = kwargs.get("stream_id", 0 if self.device.type == "cpu" else None)
        self.stream_id = next(_numbers) if number is None else int(number)
        self._before: Any = None

    @property
    def device_type(self) -> str:
        """Name the type of the device."""
        return str(self.device.type)

    device_index = property(lambda self: -1 if self.device.index is None else self.device.index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

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
        self._before = _entered.streams.get(self.device)
        enter_stream(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _entered.streams.pop(self.device, None)
        if self._before is not None:
            enter_stream(self._before)

    def __repr__(self) -> str:
        where = f"device_type={self.device_type}, device_index={self.device_index}"
        return f"torch.Stream {where}, stream_id={self.stream_id}"


class Event:
    """A place in what runs, to measure times between two of them.

    Args:
      device: the device; by default the CPU.
      enable_timing: whether times are asked for; recording then runs what is recorded, and waits
        for it: it cuts a training step into several programs, which cost more than one.
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

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, event_flag=0, "
            f"event_id=0"
        )


class StreamContext:
    """A block in which a stream is the current one of its device; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exc_info)


def stream(stream: Any) -> StreamContext:
    """Return a block in which a stream is the current one of its device."""
    return StreamContext(stream)
