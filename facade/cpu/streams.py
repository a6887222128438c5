"""PyTorch's streams of the processor: all that leafax runs is in one order."""

from __future__ import annotations

from typing import Any

from .._api.streams import Event as Event
from .._api.streams import Stream as Stream


class StreamContext:
    """A block that is to run in a stream: there is one order."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """Return a block that is to run in a stream: there is one order."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """Return the queue that all runs in."""
    return Stream()
