"""Helpers of checkpoints that PyTorch has too: inputs cut from the graph, device states."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from leafax.functional.program.platform import where_data_are_made

from .._core.handle import Handle
from .._core.jax_devices import device, jax_device, name_of
from .._core.tree.trees import tree_leaves
from .._ops.creation.generator import default_of


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
        """Set the type of devices that are given by their numbers."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type that was set last, at first that of JAX's default device."""
        return DefaultDeviceType._default_device_type or name_of(where_data_are_made())[0]


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the numbers of the devices that tensors are on, and their generators' states.

    The CPU is not among them: `get_rng_state` tells of it.
    """
    tensors = [t for t in tree_leaves(args) if isinstance(t, Handle)]
    found = [d for t in tensors if (d := t.device).type != "meta" and d != device("cpu")]  # type: ignore[attr-defined]
    return [d.index for d in found], [default_of(jax_device(d)).get_state() for d in found]


def set_device_states(
    devices: list[int], states: list[Any], *, device_type: str | None = None
) -> None:
    """Put back what `get_device_states` gave.

    Args:
      devices: numbers of devices.
      states: of their generators.
      device_type: of the devices, by default what `DefaultDeviceType` tells.
    """
    kind = device_type or DefaultDeviceType.get_device_type()
    if kind != "meta":
        for number, state in zip(devices, states, strict=False):
            default_of(jax_device(device(kind, number))).set_state(state)
