"""Random keys in a pytree, as the arrays of numbers that programs take in and give out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import GetAttrKey


@jax.tree_util.register_pytree_with_keys_class
class KeyData:
    """A random key as a node whose leaf is its numbers.

    Attributes:
      data: what `jax.random.key_data` gives of the key, or what stands for that: a tensor.
      impl: the key's implementation.
    """

    def __init__(self, data: Any, impl: Any) -> None:
        self.data, self.impl = data, impl

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any]], Any]:
        return ((GetAttrKey("data"), self.data),), self.impl

    @classmethod
    def tree_unflatten(cls, impl: Any, children: tuple[Any]) -> KeyData:
        return cls(children[0], impl)


def is_key(x: Any) -> bool:
    """Return True for an array of random keys (of the new style)."""
    return isinstance(x, jax.Array) and bool(jnp.issubdtype(x.dtype, jax.dtypes.prng_key))


def without_keys(tree: Any) -> Any:
    """Replace each array of random keys in a tree by a `KeyData`. Inverse of `with_keys`."""

    def data(x: Any) -> Any:
        return KeyData(jax.random.key_data(x), jax.random.key_impl(x)) if is_key(x) else x

    return jax.tree.map(data, tree)


def with_keys(tree: Any) -> Any:
    """Replace each `KeyData` in a tree by random keys. Inverse of `without_keys`."""

    def key(x: Any) -> Any:
        return jax.random.wrap_key_data(x.data, impl=x.impl) if isinstance(x, KeyData) else x

    return jax.tree.map(key, tree, is_leaf=lambda x: isinstance(x, KeyData))
