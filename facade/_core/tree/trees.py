"""Trees of values, as `torch.utils._pytree` and `torch.func` take them.

Dicts keep the order of their keys, unlike those of `jax.tree`, and None is a leaf. What JAX has
been told of (`jax.tree_util.register_pytree_node`, dataclasses of Flax) is a node here, too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any, cast

from .nodes import BUILTIN_TYPES, DICTS, NODES, take_apart


class TreeSpec:
    """The structure of a tree.

    Attributes:
      type: of the node; None for a leaf.
      context: what its children do not say: the keys of a dict, ...
      num_leaves: how many leaves are below it.
    """

    __slots__ = ("_children", "_context", "num_leaves", "type")

    num_leaves: int

    def __init__(self, type: Any, context: Any, children: Iterable[TreeSpec]) -> None:
        self.type, self._context, self._children = type, context, tuple(children)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in self._children)

    @property
    def context(self) -> Any:
        return self._context

    @property
    def num_children(self) -> int:
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(c.num_nodes for c in self._children)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of a tree at the places of this structure's leaves."""
        return flatten_up_to(self, tree)

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree with this structure and these leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, len(self._children), self.num_leaves))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        pad = ",\n" + " " * (indent + 2)
        inner = pad.join(c.__repr__(indent + 2) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"


_LEAF = TreeSpec(None, None, ())


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves, is_leaf)


def _walk(x: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(x) else take_apart(x)
    if node is None:
        leaves.append(x)
        return _LEAF
    kind, children, context = node
    return TreeSpec(kind, context, [_walk(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Build the tree of a structure and leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _build(iter(leaves), treespec)


def _build(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return NODES[spec.type].unflatten_fn([_build(leaves, c) for c in spec._children], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Build a tree of what `func` returns for each leaf and the others' parts at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[flatten_up_to(spec, r) for r in rests]]
    return tree_unflatten([func(*xs) for xs in zip(*columns, strict=True)], spec)


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Call `func` for each leaf; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    kinds: Any, func: Callable[[Any], Any], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """Map a function over the leaves of these types, or that a function chooses; others stay."""
    chosen = chooser(kinds)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def chooser(kinds: Any) -> Callable[[Any], bool]:
    """Return the function that tells which leaves are meant.

    Args:
      kinds: a type, a union or tuple of types, or the function itself.
    """
    if isinstance(kinds, (type, tuple, UnionType)):
        return lambda x: isinstance(x, kinds)
    if callable(kinds):
        return kinds  # type: ignore[no-any-return]
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Return whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Return whether `pred` holds for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def flatten_up_to(spec: TreeSpec, tree: Any) -> list[Any]:
    """Return the subtrees of a tree at the places of a structure's leaves.

    The tree may go on below these places.

    Raises:
      ValueError: it does not begin with this structure.
    """
    if spec.type is None:
        return [tree]
    node = take_apart(tree)
    kind = type(tree) if node is None else node[0]
    custom = spec.type not in BUILTIN_TYPES
    dicts = spec.type in DICTS and kind in DICTS
    if node is None or kind is not spec.type and not dicts:
        what = "Type" if custom else "Node type"
        raise ValueError(f"{what} mismatch; expected {spec.type!r}, but got {kind!r}.")
    _, children, context = node
    below = list(children)
    if len(below) != spec.num_children:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got {len(below)}."
        )
    if dicts:  # whatever their order and kind
        mine = cast(Any, spec.context[1] if spec.type is defaultdict else spec.context)
        if set(mine) != set(tree):
            missing, extra = set(mine) - set(tree), set(tree) - set(mine)
            message = f"; missing key(s): {missing}" if missing else ""
            message += f"; extra key(s): {extra}" if extra else ""
            raise ValueError(f"Node keys mismatch{message}.")
        below = [tree[key] for key in mine]
    elif spec.context != context and spec.type is not deque:
        if custom:
            raise ValueError(f"Node context mismatch for custom node type {spec.type!r}.")
        raise ValueError(
            f"Node context mismatch for node type {spec.type!r}; expected {spec.context!r}, but "
            f"got {context!r}."
        )
    return [x for c, s in zip(below, spec._children, strict=True) for x in flatten_up_to(s, c)]
