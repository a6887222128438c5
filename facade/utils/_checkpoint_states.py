"""Helpers of checkpoints that PyTorch has too: inputs cut from the graph, device states.

Generators are part of what a checkpoint computes again, so there are no states to keep here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from .._core.handle import Handle


def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """Detach the tensors of a tuple as leaves that require grad as they did; keep other items.

    Raises:
      RuntimeError: for anything but a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(_leaf(x) if isinstance(x, Handle) else x for x in inputs)


def _leaf(x: Any) -> Any:
    out = x.detach()
    out.requires_grad = x.requires_grad
    return out


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among `inputs` requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Handle)):  # type: ignore[attr-defined]
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class DefaultDeviceType:
    """The type of device that checkpoints are said to keep the generator states of."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Remember a type; it changes nothing."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type that was set last, `"cpu"` at first."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Devices with generators of their own, and those generators' states: none."""
    return [], []


def set_device_states(
    devices: list[int], states: list[Any], *, device_type: str | None = None
) -> None:
    """Put back what `get_device_states` gave: nothing."""
