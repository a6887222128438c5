"""Partition, merge and differentiate pytrees by mask: True means trainable.

What a mask leaves out is a constant to `jax.vjp`: no gradient of it is computed, and nothing is
saved for one. That is what makes a frozen backbone cheap, and setting its gradients to zero
afterwards is not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .lowering.tags import with_probes
from .program.paths import PyTree, paths, select


def partition(tree: PyTree, mask: PyTree) -> tuple[PyTree, PyTree]:
    """Split a tree into what the mask selects and the rest. `merge` is the inverse.

    Args:
      tree: any pytree.
      mask: what `select` takes: a pytree of bools or a prefix, patterns, a predicate.

    Returns:
      `(selected, rest)`: two trees like `tree`, each with None in place of the other's leaves. JAX
      and optax skip None, so `selected` alone can be differentiated, updated and saved.

    >>> partition({"backbone": 1.0, "head": 2.0}, "head")
    ({'backbone': None, 'head': 2.0}, {'backbone': 1.0, 'head': None})
    """
    leaves, treedef = jax.tree.flatten(tree)
    chosen = jax.tree.leaves(select(tree, mask))
    pairs = list(zip(leaves, chosen, strict=True))
    selected = [leaf if yes else None for leaf, yes in pairs]
    rest = [None if yes else leaf for leaf, yes in pairs]
    return jax.tree.unflatten(treedef, selected), jax.tree.unflatten(treedef, rest)


def merge(a: PyTree, b: PyTree) -> PyTree:
    """Join two trees of which each has None where the other has a leaf. Inverse of `partition`.

    Args:
      a, b: trees of one structure, as `partition` returns them.

    Returns:
      A tree of that structure with the leaves of both.

    Raises:
      ValueError: the structures differ, or both trees have a leaf at one place.

    >>> merge(*partition({"backbone": 1.0, "head": 2.0}, "head"))
    {'backbone': 1.0, 'head': 2.0}
    """
    treedef: Any
    ours, treedef = jax.tree.flatten(a, is_leaf=_is_none)
    theirs, other = jax.tree.flatten(b, is_leaf=_is_none)
    if treedef != other:
        raise ValueError(
            f"`merge` takes the two halves of one tree, as `partition` returns them; these differ "
            f"in structure: {treedef} and {other}"
        )
    pairs = list(zip(ours, theirs, strict=True))
    both = [i for i, (x, y) in enumerate(pairs) if x is not None and y is not None]
    if both:
        name = paths(jax.tree.unflatten(treedef, range(len(pairs))))[both[0]]
        raise ValueError(
            f"both trees have a leaf at `{name}`: `merge` never overwrites. Take it out of one "
            f"with `partition`"
        )
    return jax.tree.unflatten(treedef, [y if x is None else x for x, y in pairs])


def _is_none(x: Any) -> bool:
    return x is None


def value_and_grad(
    fn: Callable[..., Any],
    mask: PyTree = True,
    *,
    argnum: int = 0,
    has_aux: bool = False,
    wrt: Sequence[str] = (),
) -> Callable[..., Any]:
    """Make a function that returns `fn`'s value and the gradients of what the mask selects.

    The rest is never differentiated: the compiled backward pass ends where the selected leaves do.

    Args:
      fn: returns a real scalar, or `(scalar, aux)`.
      mask: which leaves of the argument to differentiate: what `select` takes. True, the default,
        is all of them. Resolved against the argument at each call.
      argnum: position of the pytree of parameters among the arguments.
      has_aux: `fn` returns `(scalar, aux)`.
      wrt: names of intermediates (see `tag`) whose gradients are wanted too.

    Returns:
      A function of `fn`'s arguments that returns `(value, gradients)`, with `has_aux`
      `((value, aux), gradients)`. `gradients` is like the argument, with None for each leaf that
      the mask leaves out; with `wrt` it is `(gradients, {name: gradient})`.

    Raises:
      ValueError: nothing to differentiate, or a name in `wrt` that is not tagged.
      TypeError: a selected leaf is not floating point or complex.

    >>> import jax.numpy as jnp
    >>> def loss(params, x):
    ...     return (params["head"] * params["backbone"] * x).sum()
    >>> params = {"backbone": jnp.float32(2), "head": jnp.float32(3)}
    >>> value, gradients = value_and_grad(loss, "head")(params, jnp.ones(2))
    >>> gradients
    {'backbone': None, 'head': Array(4., dtype=float32...)}
    """
    if isinstance(wrt, str):
        raise TypeError(f"`wrt` is a sequence of names: write `wrt=({wrt!r},)`")

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        if not -len(args) <= argnum < len(args):
            raise ValueError(
                f"argument {argnum} holds the parameters, but {len(args)} positional arguments "
                f"were given: pass them by position, or set `argnum`"
            )
        selected, rest = partition(args[argnum], mask)
        _check_differentiable(selected, wrt)

        def of_selected(selected: PyTree) -> Any:
            full = list(args)
            full[argnum] = merge(selected, rest)
            return fn(*full, **kwargs)

        if not wrt:
            return jax.value_and_grad(of_selected, has_aux=has_aux)(selected)
        probed, probes = with_probes(of_selected, wrt, selected)
        out, (named, gradients) = jax.value_and_grad(probed, argnums=(0, 1), has_aux=has_aux)(
            probes, selected
        )
        return out, (gradients, named)

    return differentiated


def grad(
    fn: Callable[..., Any],
    mask: PyTree = True,
    *,
    argnum: int = 0,
    has_aux: bool = False,
    wrt: Sequence[str] = (),
) -> Callable[..., Any]:
    """Make a function that returns the gradients of what the mask selects.

    Args:
      fn, mask, argnum, has_aux, wrt: as in `value_and_grad`.

    Returns:
      A function of `fn`'s arguments that returns the gradients of `value_and_grad`, with `has_aux`
      `(gradients, aux)`.

    Raises:
      ValueError: nothing to differentiate, or a name in `wrt` that is not tagged.
      TypeError: a selected leaf is not floating point or complex.

    >>> import jax.numpy as jnp
    >>> loss = lambda params: params["backbone"] * params["head"]
    >>> grad(loss, {"backbone": False, "head": True})({"backbone": 2.0, "head": 3.0})
    {'backbone': None, 'head': Array(2., dtype=float32, weak_type=True)}
    """
    both = value_and_grad(fn, mask, argnum=argnum, has_aux=has_aux, wrt=wrt)

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        out, gradients = both(*args, **kwargs)
        return (gradients, out[1]) if has_aux else gradients

    return differentiated


def _check_differentiable(selected: PyTree, wrt: Sequence[str]) -> None:
    leaves = jax.tree.leaves(selected)
    if not leaves and not wrt:
        raise ValueError(
            "the mask selects no leaf, so there is nothing to differentiate. True means trainable: "
            "`leafax.functional.invert(mask)` swaps the two"
        )
    for name, leaf in zip(paths(selected), leaves, strict=True):
        dtype = jnp.result_type(leaf)
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise TypeError(
                f"the mask selects `{name}`, which has dtype {dtype.name}: only floating point and "
                f"complex leaves have gradients. Leave it out of the mask"
            )
