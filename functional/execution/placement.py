"""Devices of programs: where one runs, and what makes its inputs come there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from ..program.meta import META
from ..program.program import Input, Program


def devices_of(program: Program) -> tuple[Any, ...]:
    """List the devices (or sets of them) that values of a program must be on, each once."""
    found = {aval.device: None for entry in program.entries for aval in entry.avals}
    return tuple([d for d in found if d is not None and d is not META])


def single_device_of(program: Program) -> Any:
    """Return the one device that a program runs on; None if it runs anywhere, or on a mesh."""
    found = devices_of(program)
    return found[0] if len(found) == 1 and not isinstance(found[0], tuple) else None


def sharding_options(device: Any) -> dict[str, Any]:
    """Return the options of `jax.jit` for a program on this device.

    What is not committed to a device goes there, and whether it is committed makes no difference to
    what is compiled.
    """
    if device is None:
        return {}
    where = SingleDeviceSharding(device)
    return {"in_shardings": where, "out_shardings": where}


def default_device(device: Any) -> AbstractContextManager[Any]:
    """Return a block in which ops that take no arrays run on this device, if it is one."""
    return nullcontext() if device is None else jax.default_device(device)


def put_outputs(device: Any, outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return outputs of ops that ran one by one, committed to the program's device."""
    if device is None:
        return tuple(outputs)
    return tuple([x if is_on(x, device) else jax.device_put(x, device) for x in outputs])


def is_on(array: Any, device: Any) -> bool:
    """Return True if an array is committed to this one device."""
    return bool(getattr(array, "committed", False)) and array.devices() == {device}


def is_misplaced(error: Exception) -> bool:
    """Return True if JAX refuses arguments because they are on several devices."""
    return isinstance(error, ValueError) and "incompatible devices" in str(error)


def gather_inputs(program: Program, args: Sequence[Any]) -> list[Any]:
    """Return a program's arguments with those that may be anywhere where the others are.

    What was asked for on no device lies where it was computed.
    """
    avals = [entry.aval for entry in program.entries if isinstance(entry, Input)]
    where = _place(single_device_of(program), args)
    return [
        jax.device_put(a, where) if aval.device is None and isinstance(a, jax.Array) else a
        for aval, a in zip(avals, args, strict=True)
    ]


def _place(device: Any, args: Sequence[Any]) -> Any:
    for a in args:
        if isinstance(a, jax.Array) and isinstance(a.sharding, NamedSharding):
            return NamedSharding(a.sharding.mesh, PartitionSpec())
    if device is not None:
        return device
    default = jax.config.jax_default_device or jax.local_devices()[0]  # type: ignore[attr-defined]
    return jax.local_devices(backend=default)[0] if isinstance(default, str) else default
