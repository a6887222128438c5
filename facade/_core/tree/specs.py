"""Structures of trees that are made without one, and PyTorch's lesser functions of trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from .classes import CONSTANT_NODES
from .nodes import NODES, NodeDef, is_named
from .paths import tree_is_leaf
from .trees import (
    _LEAF,
    TreeSpec,
    chooser,
    tree_leaves,
    tree_map_,
    tree_structure,
    tree_unflatten,
)


class _OfLeaves(type):
    """Takes the structure of a single leaf for an instance."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TreeSpec) and x.is_leaf()


class LeafSpec(metaclass=_OfLeaves):
    """The structure of a single leaf: `LeafSpec()` gives it, `isinstance` tells it."""

    def __new__(cls) -> Any:
        return _LEAF


def treespec_leaf() -> TreeSpec:
    """Return the structure of a single leaf."""
    return _LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Make the structure of a tuple of those of its items."""
    children = list(iterable)
    if any(not isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """Make the structure of a dict of those of its values."""
    made = dict(mapping, **kwargs)
    if any(not isinstance(child, TreeSpec) for child in made.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {made!r}.")
    return TreeSpec(dict, list(made), made.values())


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Write a structure as the tree with an asterisk for each leaf."""
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """Return a leaf for each leaf of a structure that begins as the tree; None if it does not."""
    found: list[Any] = []

    def add(x: Any, below: Any) -> None:
        found.extend([x] * tree_structure(below, is_leaf).num_leaves)

    try:
        whole = tree_unflatten([0] * treespec.num_leaves, treespec)
        tree_map_(add, tree, whole, is_leaf=is_leaf)
    except ValueError:
        return None
    return found


def map_only(kinds: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator: the function is called for leaves of these types, others stay."""
    chosen = chooser(kinds)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @wraps(func)
        def call(x: Any) -> Any:
            return func(x) if chosen(x) else x

        return call

    return decorate


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return [x for a in (*args, *kwargs.values()) for x in tree_leaves(a)]


def is_namedtuple(obj: object | type) -> bool:
    """Tell whether an object is a named tuple, or a class of them."""
    return is_named(obj)


def is_namedtuple_class(cls: type) -> bool:
    """Tell whether a class is one of named tuples."""
    return isinstance(cls, type) and is_named(cls)


def is_namedtuple_instance(obj: object) -> bool:
    """Tell whether an object is a named tuple."""
    return not isinstance(obj, type) and is_named(obj)


def is_structseq(obj: object | type) -> bool:
    """Tell whether an object is a tuple of C's named fields, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Tell whether a class is one of tuples of C's named fields."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(isinstance(getattr(cls, name, None), int) for name in counts)
    )


def is_structseq_instance(obj: object) -> bool:
    """Tell whether an object is a tuple of C's named fields."""
    return is_structseq_class(type(obj))


def _warn_of(name: str, other: str) -> None:
    warnings.warn(
        f"torch.utils._pytree.{name} is private and will be removed in a future release. "
        f"Please use torch.utils._pytree.{other} instead.",
        FutureWarning,
        stacklevel=3,
    )


def _is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    _warn_of("_is_leaf", "tree_is_leaf")
    return tree_is_leaf(tree, is_leaf)


def _is_namedtuple_instance(tree: Any) -> bool:
    _warn_of("_is_namedtuple_instance", "is_namedtuple_instance")
    return is_namedtuple_instance(tree)


def _register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None,
    maybe_from_str_fn: Any = None, *, flatten_with_keys_fn: Any = None, **names: Any,
) -> None:  # fmt: skip
    """Make a class a kind of node, in the place of what it was registered as before."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. "
        "Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.",
            stacklevel=2,
        )
    NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _deregister_pytree_node(cls: type) -> None:
    del NODES[cls]
    CONSTANT_NODES.discard(cls)
