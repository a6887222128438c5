"""The call of an `nn.Module` as a function of arrays, for Flax modules that have it inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import leafax
from leafax import nn
from leafax.func import functional_call

from .._models import stillness

Tree = dict[str, Any]


def check_module(module: Any) -> None:
    """Raise if something is no `leafax.nn.Module`.

    Raises:
      TypeError: with what it is.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"`module` must be a `leafax.nn.Module`, got `{type(module).__name__}`: a Flax module "
            f"is part of another as it is"
        )


def members_of(module: nn.Module) -> dict[str, tuple[str, Any]]:
    """Return the tensors of a module by path, each with its kind.

    Returns:
      By dotted path `"parameter"`, `"statistic"` (of a batch norm) or `"buffer"`, and the tensor.
    """
    found = {path: ("parameter", t) for path, t in module.named_parameters()}
    parts = dict(module.named_modules())
    for path, t in module.named_buffers():
        owner = parts[path.rpartition(".")[0]]
        still = isinstance(owner, nn.modules.batchnorm._NormBase)
        found[path] = ("statistic" if still else "buffer", t)
    return found


def array_of(t: Any) -> Any:
    """Return a tensor's array, in the dtype that JAX has for it."""
    array = t.jax()
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    return array if array.dtype == dtype else jnp.asarray(np.asarray(array), dtype)


def nested(flat: Mapping[str, Any]) -> Tree:
    """Build the tree of what is given by dotted path. Inverse of `flattened`."""
    tree: Tree = {}
    for path, x in flat.items():
        *parts, name = path.split(".")
        node = tree
        for part in parts:
            node = node.setdefault(part, {})
        node[name] = x
    return tree


def flattened(tree: Mapping[str, Any], before: str = "") -> Tree:
    """Return what a tree holds, by dotted path. Inverse of `nested`."""
    flat: Tree = {}
    for name, x in tree.items():
        flat |= flattened(x, f"{before}{name}.") if isinstance(x, Mapping) else {before + name: x}
    return flat


def call(
    module: nn.Module, arrays: Mapping[str, Any], args: Any, kwargs: Any, *,
    train: bool | None, key: Callable[[], Any],
) -> tuple[Any, Tree]:  # fmt: skip
    """Call a module with arrays in place of its tensors; JAX may be tracing.

    Args:
      arrays: by path, all parameters and buffers.
      args, kwargs: pytrees with arrays or tensors.
      train: the mode; None for that which the module has.
      key: gives a key of JAX's for each random op.

    Returns:
      The output with arrays for tensors, and the values of all paths after the call.
    """
    tensors = {path: leafax.as_tensor(x) for path, x in arrays.items()}
    args, kwargs = jax.tree.map(_tensor, (args, kwargs), is_leaf=_is_tensor)
    keys = leafax.default_generator.keys_from(lambda: jax.random.bits(key(), (2,), "uint32"))
    with _mode(module, train), keys:
        out = functional_call(module, tensors, args, kwargs)
    out = jax.tree.map(lambda x: x.jax() if _is_tensor(x) else x, out, is_leaf=_is_tensor)
    return out, {path: _like(t.jax(), arrays[path]) for path, t in tensors.items()}


@contextmanager
def _mode(module: nn.Module, train: bool | None) -> Iterator[None]:
    """Put a module into training or evaluation mode within the block."""
    before = [(part, stillness.mode_of(part)) for part in module.modules()]
    try:
        if train is not None:
            module.train(train)
        yield
    finally:
        for part, mode in before:
            stillness.set_mode(part, mode)


def _like(new: Any, old: Any) -> Any:
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def _tensor(x: Any) -> Any:
    return leafax.as_tensor(x) if isinstance(x, (jax.Array, np.ndarray, np.generic)) else x


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)
