"""Programs on several devices: what replaces an input lies where that input lay.

XLA chooses how an output is split over a mesh. A replicated bias would come back split, and the
next step would compile anew for it. So an output that replaces an input is tied to it: an updated
parameter to what it was, a gradient to its parameter. An input that nobody placed enters as a copy
on each device, since that is how it will come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax._src.array import ArrayImpl  # JAX has no public way to take an array off its device
from jax.sharding import AxisType, NamedSharding, PartitionSpec

#: True once this process has data on several devices; empty before.
several: list[bool] = []

Pairs = tuple[tuple[int, int], ...]


def is_spread(array: Any) -> bool:
    """Return True if an array lies on more than one device.

    Args:
      array: of any kind, or a number.

    Returns:
      False for what is no JAX array.

    >>> import jax.numpy as jnp
    >>> from leafax.functional.execution.several_devices import is_spread
    >>> is_spread(jnp.ones(3))
    False
    """
    return isinstance(array, ArrayImpl) and array.sharding.num_devices > 1  # and no tracer


def alone(array: jax.Array) -> jax.Array:
    """Return what lies whole on each device as an array on one, which nobody asked for.

    Args:
      array: whole on each device.

    Returns:
      The array on the first of them, not committed to it; nothing is copied or waited for.

    >>> import jax.numpy as jnp
    >>> from leafax.functional.execution.several_devices import alone
    >>> alone(jnp.ones(3)).committed
    False
    """
    part = array.addressable_data(0)
    return ArrayImpl(part.aval, part.sharding, [part], committed=False)  # type: ignore[list-item]


def refuse_explicit_mesh() -> None:
    """Raise if a mesh is set whose axes are part of the types of arrays.

    Raises:
      RuntimeError: `jax.set_mesh` has set one; leafax's programs are traced without such types.

    >>> from leafax.functional.execution.several_devices import refuse_explicit_mesh
    >>> refuse_explicit_mesh()
    """
    mesh = jax.sharding.get_abstract_mesh()
    if any(kind is AxisType.Explicit for kind in mesh.axis_types):
        raise RuntimeError(
            f"a mesh with explicit axes is set, and programs of leafax are split by XLA: set "
            f"jax.make_mesh({mesh.axis_sizes}, {mesh.axis_names}, "
            f"axis_types=(jax.sharding.AxisType.Auto,) * {len(mesh.axis_names)}) instead, or none"
        )


class Homes:
    """Outputs of a program that replace an input, on several devices.

    Args:
      pairs: places of outputs, and of the inputs that they replace.
      meshed: the program has values on several devices at once.
    """

    def __init__(self, pairs: Pairs, meshed: bool) -> None:
        self._pairs, self._meshed = pairs, meshed
        self._inputs = tuple({i: None for _, i in pairs})
        self._lie: tuple[Any, ...] | None = None  # how the inputs lie; None on one device
        self._others: dict[Any, Any] = {}  # executables for those that lie otherwise

    def enter(self, args: Sequence[Any], plan: Any) -> Sequence[Any]:
        """Return a program's arguments as they enter it, and have its plan compiled for them.

        It is compiled whole: op by op data would be moved back and forth, and on CPUs XLA's
        collectives of several programs wait for each other.

        Args:
          args: one an input.
          plan: of the program.
        """
        if not self._meshed:
            return args
        lie = self._lying(args)
        if self._lie is not None and lie == self._lie:
            self._lie = lie  # the same objects next time, which are equal at once
            return args
        where = next((a.sharding for a in args if is_spread(a)), None)
        if where is None:
            lie = None
        else:
            refuse_explicit_mesh()
            if isinstance(where, NamedSharding):
                args = self._gathered(args, NamedSharding(where.mesh, PartitionSpec()))
                lie = self._lying(args)
        if lie != self._lie:
            ready = plan.exchange(self._others.pop(lie, None))
            self._others[self._lie], self._lie = ready, lie
            if lie is not None:
                plan.run_whole()
        return args

    def _lying(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        return tuple([getattr(args[i], "sharding", None) for i in self._inputs])

    def _gathered(self, args: Sequence[Any], everywhere: NamedSharding) -> Sequence[Any]:
        """Return arguments with a copy on each device of those that nobody placed."""
        found = list(args)
        for i in self._inputs:
            if not getattr(args[i], "committed", False):
                found[i] = jax.device_put(args[i], everywhere)
        return found

    def tie(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Tell XLA how outputs lie; for a function that JAX traces."""
        if self._lie is None:
            return outputs
        lie = dict(zip(self._inputs, self._lie, strict=True))
        found = list(outputs)
        for k, i in self._pairs:
            if lie[i].num_devices > 1:
                found[k] = jax.lax.with_sharding_constraint(found[k], lie[i])
        return tuple(found)

    def forget(self) -> list[Any]:
        """Give up the executables for inputs that lie otherwise."""
        others, self._others = [*self._others.values()], {}
        return others
