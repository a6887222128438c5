"""Dotted paths of a pytree's leaves, and masks selected by them.

A mask is a pytree of bools with the structure of the tree it belongs to. True means *trainable*:
differentiated, updated, decayed. Masks are static: they are fixed when a function is traced.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeGuard

import jax
import numpy as np
from jax.tree_util import GetAttrKey

PyTree = Any
KeyPath = tuple[Any, ...]
Pattern = str | re.Pattern[str]
Predicate = Callable[[str, Any], bool]


def paths(tree: PyTree) -> list[str]:
    """List the dotted path of each leaf, in JAX's order.

    Keys, indices and attribute names are joined by dots. A box whose only leaf is called `value`
    (a Flax `nnx.Variable`, a linen `Partitioned`) is left out: `head.kernel`, not
    `head.kernel.value`.

    Args:
      tree: any pytree: dicts, lists, registered dataclasses, `nnx.State`.

    Returns:
      As many strings as the tree has leaves; `""` for a tree that is a leaf itself.

    >>> paths({"backbone": [{"kernel": 1.0}, {"kernel": 2.0}], "head": {"bias": 3.0}})
    ['backbone.0.kernel', 'backbone.1.kernel', 'head.bias']
    """
    keypaths = [path for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    siblings = Counter(path[:-1] for path in keypaths)
    return [
        jax.tree_util.keystr(_unbox(path, siblings), simple=True, separator=".")
        for path in keypaths
    ]


def _unbox(path: KeyPath, siblings: Counter[KeyPath]) -> KeyPath:
    if path and path[-1] == GetAttrKey("value") and siblings[path[:-1]] == 1:
        return path[:-1]
    return path


def select(tree: PyTree, what: Pattern | Iterable[Pattern] | Predicate | PyTree) -> PyTree:
    """Make the mask of the leaves that patterns, a predicate or a pytree of bools select.

    Args:
      tree: the pytree of parameters.
      what: one of
        - a glob over dotted paths, or several: `*` and `?` stay within one name, `**` is any
          number of names, none included. A glob that matches an inner node selects all below it:
          `"backbone"` and `"backbone.*"` both select all of the backbone, `"**.bias"` every bias;
        - a compiled regular expression, or several (with globs or not), searched for in each leaf's
          path: anchor it with `^` and `$` where that matters;
        - a predicate `(path, leaf) -> bool`;
        - a pytree of bools, or a prefix of one: `{"backbone": False, "head": True}`, `True`.

    Returns:
      A pytree like `tree` with a Python bool for each leaf, True where selected.

    Raises:
      ValueError: a pattern or predicate that matches no leaf, or bools that do not fit `tree`.
      TypeError: something in place of a bool.

    >>> params = {"backbone": {"kernel": 1.0, "bias": 2.0}, "head": {"kernel": 3.0}}
    >>> select(params, "**.kernel")
    {'backbone': {'bias': False, 'kernel': True}, 'head': {'kernel': True}}
    >>> select(params, lambda path, leaf: leaf < 1.5)
    {'backbone': {'bias': False, 'kernel': True}, 'head': {'kernel': False}}
    >>> select(params, {"backbone": False, "head": True})
    {'backbone': {'bias': False, 'kernel': False}, 'head': {'kernel': True}}
    """
    if isinstance(what, (str, re.Pattern)):
        what = [what]
    if _are_patterns(what):
        chosen = _by_patterns(paths(tree), what)
    elif callable(what):
        chosen = _by_predicate(tree, what)
    else:
        return _by_bools(tree, what)
    return jax.tree.unflatten(jax.tree.structure(tree), chosen)


def invert(mask: PyTree) -> PyTree:
    """Swap what a mask selects and what it leaves out.

    Args:
      mask: a pytree of bools.

    Returns:
      A pytree like it, True where it is False.

    >>> params = {"backbone": 1.0, "head": 2.0}
    >>> invert(select(params, "backbone"))
    {'backbone': False, 'head': True}
    """
    return jax.tree.map(lambda chosen: not chosen, mask)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the three known names most like `name`, for a message: '`a`, `b`, `c`'."""
    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.0)
    return ", ".join(f"`{one}`" for one in near)


def _are_patterns(what: Any) -> TypeGuard[Collection[Pattern]]:
    return (
        isinstance(what, (list, tuple, set, frozenset))
        and len(what) > 0
        and all(isinstance(one, (str, re.Pattern)) for one in what)
    )


def _by_patterns(names: list[str], patterns: Collection[Pattern]) -> list[bool]:
    chosen = [False] * len(names)
    for pattern in patterns:
        expression = _compile_glob(pattern) if isinstance(pattern, str) else pattern
        hits = [expression.search(name) is not None for name in names]
        if not any(hits):
            raise ValueError(_no_match(pattern, names))
        chosen = [old or hit for old, hit in zip(chosen, hits, strict=True)]
    return chosen


def _no_match(pattern: Pattern, names: list[str]) -> str:
    text = pattern if isinstance(pattern, str) else pattern.pattern
    if not names:
        return f"pattern `{text}` matches nothing: the tree has no leaves"
    nodes = {".".join(name.split(".")[:n]) for name in names for n in range(1, name.count(".") + 2)}
    return (
        f"pattern `{text}` matches none of the {len(names)} paths; the nearest are "
        f"{nearest(text, sorted(nodes))}. `leafax.functional.paths(tree)` lists all; `*` stays "
        f"within one name, `**` crosses dots"
    )


@functools.lru_cache(maxsize=1024)
def _compile_glob(glob: str) -> re.Pattern[str]:
    """Turn a glob into a regular expression for the node that it matches, and all below it."""
    names = glob.split(".")
    # All below is selected anyway: a last `**` adds nothing.
    while names and names[-1] == "**":
        names.pop()
    if not names:
        return re.compile("")
    *inner, last = names
    # Any number of whole names, each with the dot that follows it.
    steps = [r"(?:[^.]+\.)*" if name == "**" else _compile_name(name) + r"\." for name in inner]
    return re.compile("^" + "".join(steps) + _compile_name(last) + r"(?:\..*)?$")


def _compile_name(name: str) -> str:
    parts = re.split(r"(\*+|\?|\[[^]]+\])", name)
    return "".join(_compile_part(part) for part in parts)


def _compile_part(part: str) -> str:
    if part.startswith("*"):
        return "[^.]*"
    if part == "?":
        return "[^.]"
    if part.startswith("[") and part.endswith("]"):
        return "[^" + part[2:] if part[1] == "!" else part
    return re.escape(part)


def _by_predicate(tree: PyTree, predicate: Predicate) -> list[bool]:
    names = paths(tree)
    leaves = jax.tree.leaves(tree)
    chosen = [
        _as_bool(predicate(name, leaf), f"the predicate's result at `{name}`")
        for name, leaf in zip(names, leaves, strict=True)
    ]
    if not any(chosen):
        raise ValueError(
            f"the predicate selects none of the {len(names)} leaves. "
            f"`leafax.functional.paths(tree)` lists the paths that it is called with"
        )
    return chosen


def _by_bools(tree: PyTree, mask: PyTree) -> PyTree:
    for name, leaf in zip(paths(mask), jax.tree.leaves(mask), strict=True):
        _as_bool(leaf, f"the mask at `{name}`" if name else "the mask")
    try:
        full = jax.tree.broadcast(mask, tree)
    except ValueError as error:
        raise ValueError(
            f"the mask does not fit the tree: {error}. A mask has the tree's structure, or a "
            f"prefix of it; `leafax.functional.select(tree, patterns)` makes one"
        ) from None
    # A prefix keeps its own container types (dict order, nnx.State), so build the tree's.
    return jax.tree.unflatten(jax.tree.structure(tree), map(bool, jax.tree.leaves(full)))


def _as_bool(value: Any, where: str) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(
        f"{where} is {value!r}, not a bool. A mask is static: True (trainable) or False for each "
        f"leaf, never an array"
    )
