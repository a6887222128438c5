"""Answers of PyTorch's modules for kinds of devices that leafax does not compute on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def is_available() -> bool:
    """Return False: leafax does not compute there."""
    return False


def device_count() -> int:
    """Return 0: there is no such device."""
    return 0


def answer_zero(device: Any = None) -> int:
    """Return 0: there is no such device."""
    return 0


def answer_none_of(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return an empty dict: there is no such device."""
    return {}


def list_states() -> list[Any]:
    """Return no states: there is no such device."""
    return []


def fail(error: type[Exception], message: str) -> Callable[..., NoReturn]:
    """Make a function that raises PyTorch's error of a build without a device.

    Args:
      error: its class.
      message: its words.

    >>> fail(RuntimeError, "no such device")(1, x=2)
    Traceback (most recent call last):
    RuntimeError: no such device
    """

    def failing(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(message)

    failing.__doc__ = f"Raise {error.__name__}: {message}"
    return failing


class NoBlock:
    """A block for a device that is not there: None or -1 changes nothing.

    Args:
      device: the device.
    """

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None and self.idx != -1:
            raise RuntimeError("PyTorch was compiled without support for this device")

    def __exit__(self, *exc_info: object) -> None:
        pass
