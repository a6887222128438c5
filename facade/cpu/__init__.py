"""PyTorch's `torch.cpu`: what programs ask of a device, of the processor."""

from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .._core import missing_names as _missing_names
from .._runtime.observation import synchronize as _synchronize
from . import amp as amp
from ._capabilities import get_capabilities as get_capabilities


def is_available() -> bool:
    """Always."""
    return True


def device_count() -> int:
    """One: JAX has a device for all processors."""
    return 1


def current_device() -> str:
    """The one."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to do: there is one."""


def is_initialized() -> bool:
    """Always."""
    return True


def synchronize(device: Any = None) -> None:
    """Run what is pending and wait for it."""
    _synchronize()


__getattr__ = _missing_names.missing(
    "leafax.cpu",
    lambda name: None,
    names=dict.fromkeys(
        ["Event", "Stream", "StreamContext", "current_stream", "stream"], "streams"
    ),
)

_end_at_callers(__name__)
