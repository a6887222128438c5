"""PyTorch's `torch.cuda.streams`: queues of a GPU; JAX orders what runs there."""

from __future__ import annotations

from typing import Any

from .._api import streams
from .._api.streams import StreamContext as StreamContext
from .._api.streams import stream as stream
from .._core.jax_devices import list_gpus

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "set_stream", "stream",
]  # fmt: skip


def _need(message: str) -> None:
    if not list_gpus():
        raise RuntimeError(message)


class Stream(streams.Stream):
    """A queue of a GPU: all that leafax runs is in one order."""

    cuda_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        _need("torch.cuda.Stream requires CUDA support")
        super().__init__("cuda" if device is None else device, priority)


class ExternalStream(Stream):
    """A queue of other code: leafax does not run in it."""


class Event(streams.Event):
    """A place in what runs on a GPU, to measure times between two of them."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        external: bool = False,
    ) -> None:  # fmt: skip
        _need("Tried to instantiate dummy base class Event")
        super().__init__("cuda", enable_timing)


def current_stream(device: Any = None) -> Stream:
    """Return the queue that a GPU's programs run in.

    Raises:
      AssertionError: there is no GPU.
    """
    if not list_gpus():
        raise AssertionError("Torch not compiled with CUDA enabled")
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Do nothing: there is one order."""
