"""PyTorch's streams of the processor: all that leafax runs is in one order."""

from __future__ import annotations

from typing import Any

from .._api.streams import Event as Event
from .._api.streams import Stream as Stream
from .._api.streams import StreamContext as StreamContext
from .._api.streams import entered_stream
from .._api.streams import stream as stream


def current_stream(device: Any = None) -> Stream:
    """Return the queue that this thread has entered, or the one that all runs in."""
    stream = Stream(stream_id=0)
    return entered_stream(stream.device) or stream
