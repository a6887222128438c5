"""PyTorch's `torch.cuda.streams`: queues of a GPU; JAX orders what runs there."""

from __future__ import annotations

from typing import Any

from .._api import streams
from .._api.streams import StreamContext as StreamContext
from .._api.streams import stream as stream
from .._core.dtypes import device as device_class
from .._core.jax_devices import list_gpus
from ._devices import find_gpu

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "get_stream_from_external", "set_stream", "stream",
]  # fmt: skip


def _need(message: str) -> None:
    if not list_gpus():
        raise RuntimeError(message)


def _place(device: Any) -> Any:
    """Return the `torch.device` of a GPU, with its number."""
    return device_class("cuda", list_gpus().index(find_gpu(device)))


class Stream(streams.Stream):
    """A queue of a GPU: all that leafax runs is in one order."""

    cuda_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        _need("torch.cuda.Stream requires CUDA support")
        super().__init__(_place(device), priority, **kwargs)

    @classmethod
    def priority_range(cls) -> tuple[int, int]:
        """Return the least and the greatest priority: there is one."""
        return 0, 0

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A queue of other code: leafax does not run in it."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event(streams.Event):
    """A place in what runs on a GPU, to measure times between two of them."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        external: bool = False,
    ) -> None:  # fmt: skip
        _need("Tried to instantiate dummy base class Event")
        super().__init__(_place(None), enable_timing)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {'uninitialized' if self._time is None else hex(id(self))}>"


def current_stream(device: Any = None) -> Any:
    """Return the queue that this thread has entered, or the default one.

    Raises:
      AssertionError: there is no GPU.
    """
    where = _place(device)
    return streams.entered_stream(where) or Stream(where, stream_id=0)


def default_stream(device: Any = None) -> Stream:
    """Return the queue that a GPU's programs run in.

    Raises:
      AssertionError: there is no GPU.
    """
    return Stream(_place(device), stream_id=0)


def set_stream(stream: Any) -> None:
    """Make a queue the current one, in name; None changes nothing."""
    if stream is not None:
        streams.enter_stream(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> ExternalStream:
    """Return a queue of other code: leafax does not run in it."""
    find_gpu(device)
    return ExternalStream(data_ptr, device)
