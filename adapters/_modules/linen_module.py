"""An `nn.Module` as a linen module: its parameters are the variables."""

from __future__ import annotations

from typing import Any

import flax.linen as flax_nn

from leafax import nn

from .from_module import array_of, call, check_module, flattened, members_of, nested

_COLLECTIONS = {"statistic": "batch_stats", "buffer": "buffers"}


class FromModule(flax_nn.Module):
    """A `leafax.nn.Module` inside of linen; `from_module` makes it.

    Attributes:
      module: it; its own tensors are where the variables begin.
    """

    module: nn.Module

    @flax_nn.compact
    def __call__(self, *args: Any, train: bool | None = None, **kwargs: Any) -> Any:
        """Call the module with the variables for its tensors.

        Args:
          args, kwargs: arrays, or trees with arrays.
          train: its mode; None leaves what `module.train()` or `eval()` said. What it draws comes
            from the stream `dropout`.
        """
        members = members_of(self.module)
        variables: dict[str, Any] = {"parameter": {}, "statistic": {}, "buffer": {}}
        for path, (kind, t) in members.items():
            variables[kind][path] = t
        arrays: dict[str, Any] = {}
        for name, tree in nested(variables["parameter"]).items():
            held = self.param(name, _first, tree)
            arrays |= flattened({name: held})
        written = []
        for kind, collection in _COLLECTIONS.items():
            for name, tree in nested(variables[kind]).items():
                variable = self.variable(collection, name, _first, None, tree)
                arrays |= flattened({name: variable.value})
                written.append((collection, name, variable, list(flattened({name: tree}))))
        out, after = call(
            self.module, arrays, args, kwargs, train=train, key=lambda: self.make_rng("dropout")
        )
        for collection, name, variable, paths in written:
            changed = any(after[path] is not arrays[path] for path in paths)
            if changed and self.is_mutable_collection(collection) and not self.is_initializing():
                value = nested({path: after[path] for path in paths})
                variable.value = value[name]
        return out


def _first(key: Any, tree: Any) -> Any:
    """Make the first variables: the module's own tensors."""
    if not isinstance(tree, dict):
        return array_of(tree)
    return {name: _first(key, below) for name, below in tree.items()}


def from_module(module: nn.Module) -> FromModule:
    """Make a linen module of a `leafax.nn.Module`.

    Its parameters are variables of `params`, in the tree of their paths; statistics of batch norms
    are `batch_stats`, other buffers `buffers`. `init` gives the values that the module has; what it
    returns is the module's state from then on, and the module itself is not written to. `apply`
    runs the module under JAX's trace: `jax.jit`, `jax.grad` and `jax.vmap` take it. It can be a
    part of other linen modules, and of `leafax.adapters.linen.Model`.

    Args:
      module: a module whose parameters all have shapes.

    Raises:
      TypeError: it is none of `leafax.nn`.

    >>> import jax, jax.numpy as jnp
    >>> from leafax import nn
    >>> from leafax.adapters.linen import from_module
    >>> inside = from_module(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
    >>> variables = inside.init(jax.random.key(0), jnp.ones((2, 3)))
    >>> gradients = jax.grad(lambda v: inside.apply(v, jnp.ones((2, 3))).sum())(variables)
    >>> gradients["params"]["2"]["bias"]
    Array([2.], dtype=float32)
    """
    check_module(module)
    return FromModule(module)
