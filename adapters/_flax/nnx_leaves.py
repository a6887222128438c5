"""Leaves of an nnx module: variables, bare arrays, random keys, and their owners."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Slot(np.ndarray[Any, Any]):
    """A stand-in for an array that is in no variable, which holds its tensor.

    Inside of plain lists and dicts nnx knows arrays alone as data, so there a tensor would be
    taken for a constant.
    """

    tensor: Any

    @classmethod
    def of(cls, tensor: Any) -> Slot:
        made = np.empty(0).view(cls)
        made.tensor = tensor
        return made

    def __deepcopy__(self, memo: Any) -> Slot:
        return Slot.of(copy.deepcopy(self.tensor, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Slot.of, (self.tensor,)


def key_data(leaf: Any) -> tuple[Any, Any]:
    """Return a leaf as an array of numbers, and its implementation if it is a random key."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf), jax.random.key_impl(leaf)
    return leaf, None


class Bare(nnx.Variable[Any]):
    """A stand-in for the variable of arrays that are in none."""


def kinds_of(state: Any) -> list[type]:
    """Return the class of the variable of each leaf; `Bare` for leaves without one."""
    found: list[type] = []
    for node in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, nnx.Variable)):
        kind = type(node) if isinstance(node, nnx.Variable) else Bare
        found += [kind] * len(jax.tree.leaves(node))
    return found


def merged(graphdef: Any, state: Any) -> Any:
    """Call `nnx.merge(graphdef, state)`, whose values are the module's alone from then on.

    The variables of `state` must be nobody else's: they are emptied. Flax leaves what it was
    given to the garbage collector, in a cycle.
    """
    module = nnx.merge(graphdef, state, copy=True)
    for node in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, nnx.Variable)):
        if isinstance(node, nnx.Variable):
            node.set_raw_value(None)
    return module


def owners_of(module: Any) -> dict[str, Any]:
    """Map the path of each BatchNorm statistic (or the like) to the module that has it.

    Containers that are no modules may lie between the two: a dict of statistics, whose keys need
    not be names.
    """
    modules: dict[Any, Any] = {}
    statistics: list[Any] = []
    for path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.Pytree):
            modules[path] = node
        elif isinstance(node, nnx.BatchStat):
            statistics.append(path)
    return {
        ".".join(map(str, path)): next(
            modules[path[:n]] for n in range(len(path) - 1, -1, -1) if path[:n] in modules
        )
        for path in statistics
    }


def refuse_hijax(name: str, leaves: Sequence[Any], names: Sequence[str]) -> None:
    """Raise if there are variables in JAX's experimental hijax among a module's leaves.

    Args:
      name: of the module's class.
      leaves, names: of its flat state.
    """
    for leaf, path in zip(leaves, names, strict=True):
        if type(leaf).__name__ == "HijaxVariable":
            raise TypeError(
                f"`{path}` of `{name}` is a hijax variable, which changes in place and holds no "
                f"tensor: make the module with `nnx.var_defaults(hijax=False)`, or unset "
                f"`flax_hijax_variable`"
            )
