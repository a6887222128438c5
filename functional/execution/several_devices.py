"""Programs on several devices: what replaces an input lies where that input lay.

XLA chooses how an output is split over a mesh. A replicated bias would come back split, and the
next step would compile anew for it. So an output that replaces an input is tied to it: an updated
parameter, a gradient to its parameter. An input that lies on one device by itself enters as a copy
on each, since that is how it will come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax._src.array import ArrayImpl  # JAX has no public way to take an array off its device
from jax.experimental.shard_alike import shard_alike
from jax.sharding import NamedSharding, PartitionSpec

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
    return isinstance(array, jax.Array) and array.sharding.num_devices > 1


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


class Homes:
    """Outputs of a program that replace an input, on several devices.

    Args:
      pairs: places of outputs, and of the inputs that they replace.
    """

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._inputs = tuple({i: None for _, i in pairs})
        self._tied = False

    def enter(self, args: Sequence[Any], run_whole: Callable[[], None]) -> Sequence[Any]:
        """Return a program's arguments as they enter it.

        Args:
          args: one an input.
          run_whole: has the program compiled anew, and whole: op by op data would be moved back
            and forth, and XLA's collectives on CPUs wait for each other.
        """
        alone = [i for i in self._inputs if not getattr(args[i], "committed", False)]
        if self._tied and not alone:
            return args
        where = next((a.sharding for a in args if is_spread(a)), None)
        if where is None:
            return args
        if not self._tied:
            self._tied = True
            run_whole()
        if alone and isinstance(where, NamedSharding):
            everywhere = NamedSharding(where.mesh, PartitionSpec())
            args = list(args)
            for i in alone:
                args[i] = jax.device_put(args[i], everywhere)
        return args

    def tie(self, outputs: tuple[Any, ...], args: Sequence[Any]) -> tuple[Any, ...]:
        """Tie outputs to what they replace; for a function that JAX traces."""
        if not self._tied:
            return outputs
        found = list(outputs)
        for k, i in self._pairs:
            found[k] = shard_alike(args[i], found[k])[1]
        return tuple(found)
