"""Devices of programs: where one runs, and what makes its inputs come there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from ..program.meta import META
from ..program.platform import where_data_are_made
from ..program.program import Input, Program


def devices_of(program: Program) -> tuple[Any, ...]:
    """List the devices (or sets of them) that values of a program must be on, each once.

    What is on one device of a mesh joins the mesh, where there is one.
    """
    found = {aval.device: None for entry in program.entries for aval in entry.avals}
    meshes = [d for d in found if isinstance(d, tuple)]
    return tuple([
        d for d in found if d is not None and d is not META and not any(d in m for m in meshes)
    ])  # fmt: skip


class Joined:
    """Values of a program on a mesh that are on one of its devices alone.

    A batch that was moved to a device is whole on each while the program runs; what is computed of
    such values alone comes back to that device.

    Args:
      program: any.
      mesh: its devices, none if the program runs on no mesh.
    """

    def __init__(self, program: Program, mesh: tuple[Any, ...]) -> None:
        self._mesh = mesh
        inputs = [entry for entry in program.entries if isinstance(entry, Input)]
        self._inputs = [i for i, entry in enumerate(inputs) if entry.aval.device in mesh]
        where = [aval.device for entry in program.entries for aval in entry.avals]
        self._outputs = [(k, where[v]) for k, v in enumerate(program.outputs) if where[v] in mesh]

    def enter(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return a program's arguments with these whole on each device of the mesh."""
        if not self._inputs:
            return args
        where = _place(None, args, self._mesh)
        found = list(args)
        for i in self._inputs:
            found[i] = jax.device_put(args[i], where)
        return found

    def leave(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a program's outputs with these on their device."""
        if not self._outputs:
            return outputs
        found = list(outputs)
        for k, device in self._outputs:
            found[k] = jax.device_put(found[k], device)
        return tuple(found)


def mesh_of(devices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the devices of the mesh among those of a program; none if there is no mesh."""
    return next((d for d in devices if isinstance(d, tuple)), ())


def single_device_of(devices: Sequence[Any]) -> Any:
    """Return the one device of a program's; None if it runs anywhere, or on a mesh."""
    return devices[0] if len(devices) == 1 and not mesh_of(devices) else None


def is_divided(program: Program, here: Any) -> bool:
    """Return True if values of a program are on several devices.

    Args:
      here: where those are that were asked for nowhere, and come from none that were.
    """
    devices = devices_of(program)
    if len(devices) != 1:
        return len(devices) > 1
    (device,) = devices
    there = device if isinstance(device, tuple) else (device,)
    return here not in there and bool(free_values(program))


def free_values(program: Program) -> set[int]:
    """Return the values that are computed where data are made that were asked for nowhere.

    These are what follows from such data, and outputs. Constants and random numbers are made where
    they are taken, and the state of a generator may be anywhere.
    """
    outputs = set(program.outputs)
    found: set[int] = set()
    given: set[int] = set()  # what follows from data
    for entry, first in zip(program.entries, program.first_values(), strict=True):
        mine = range(first, first + len(entry.avals))
        if isinstance(entry, Input):
            given.update(() if entry.aval.weak else mine)
        elif getattr(entry.call, "name", "") != "next_key":
            follows = not given.isdisjoint(entry.inputs)
            given.update(mine if follows else ())
            free = [v for v, aval in zip(mine, entry.avals, strict=True) if aval.device is None]
            found.update([v for v in free if follows or v in outputs])
    return found


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
    """Return True if JAX refuses arguments because they are on several devices, or meshes.

    What was computed while a mesh with explicit axes was set lies on that one.
    """
    return isinstance(error, ValueError) and any(words in str(error) for words in _MISPLACED)


_MISPLACED = (
    "incompatible devices", "Mesh for all inputs should be equal", "Length of device assignment",
)  # fmt: skip


def gather_inputs(program: Program, args: Sequence[Any]) -> list[Any]:
    """Return a program's arguments with those that may be anywhere where the others are.

    What was asked for on no device lies where it was computed.
    """
    avals = [entry.aval for entry in program.entries if isinstance(entry, Input)]
    devices = devices_of(program)
    where = _place(single_device_of(devices), args, mesh_of(devices))
    with jax.enable_x64(True):
        return [
            jax.device_put(a, where) if aval.device is None and isinstance(a, jax.Array) else a
            for aval, a in zip(avals, args, strict=True)
        ]


def spread_over(mesh: tuple[Any, ...], arrays: Sequence[Any]) -> list[Any]:
    """Return a program's arguments with those whole on each device of its mesh that lie elsewhere.

    What was asked for nowhere lies where an earlier program ran.
    """
    where = _place(None, arrays, mesh)
    with jax.enable_x64(True):
        return [
            jax.device_put(a, where)
            if getattr(a, "committed", False) and a.sharding.device_set != set(mesh)
            else a
            for a in arrays
        ]


def _place(device: Any, args: Sequence[Any], mesh: tuple[Any, ...]) -> Any:
    """Return the device of a program, or a copy on each device of its mesh, if it has one."""
    for a in args:
        if isinstance(a, jax.Array) and isinstance(a.sharding, NamedSharding):
            automatic = AxisType.Explicit not in a.sharding.mesh.axis_types
            if automatic and (not mesh or a.sharding.device_set == set(mesh)):
                return NamedSharding(a.sharding.mesh, PartitionSpec())
    if device is not None:
        return device
    return where_data_are_made()
