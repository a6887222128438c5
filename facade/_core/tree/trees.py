"""Trees of values, as `torch.utils._pytree` and `torch.func` take them.

Dicts keep the order of their keys, unlike those of `jax.tree`, and None is a leaf. What JAX has
been told of (`jax.tree_util.register_pytree_node`, dataclasses of Flax) is a node here, too.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

import jax

from ..dtypes import Size


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


class _Node(NamedTuple):
    """The functions that take nodes of one type apart and put them together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Iterable[Any], Any], Any]
    keys: Callable[[Any], list[Any]] | None = None  # of the children, by the context


def _fields() -> None:
    """Stand for all named tuples, whose own type is their context."""


_fields.__name__ = "namedtuple"
_NODES: dict[Any, _Node] = {
    tuple: _Node(lambda x: (x, None), lambda xs, _: tuple(xs)),
    list: _Node(lambda x: (x, None), lambda xs, _: list(xs)),
    dict: _Node(lambda x: (x.values(), list(x)), lambda xs, keys: dict(zip(keys, xs, strict=True))),
    OrderedDict: _Node(
        lambda x: (x.values(), list(x)), lambda xs, keys: OrderedDict(zip(keys, xs, strict=True))
    ),
    defaultdict: _Node(
        lambda x: (x.values(), [x.default_factory, list(x)]),
        lambda xs, context: defaultdict(context[0], zip(context[1], xs, strict=True)),
    ),
    deque: _Node(lambda x: (x, x.maxlen), lambda xs, most: deque(xs, most)),
    Size: _Node(lambda x: (x, None), lambda xs, _: tuple(xs)),
    _fields: _Node(lambda x: (x, type(x)), lambda xs, made: made(*xs)),
}


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any], **_: Any,
) -> None:  # fmt: skip
    """Make a class a kind of node.

    Args:
      cls: the class; its subclasses are not.
      flatten_fn: returns an object's children and its context.
      unflatten_fn: makes an object of children and context.
    """
    if cls in _NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _NODES[cls] = _Node(flatten_fn, unflatten_fn)


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _take_apart(x: Any) -> tuple[Any, Iterable[Any], Any] | None:
    """Return type, children and context of a node; None for a leaf."""
    kind: Any = type(x)
    if kind not in _NODES:
        if not _is_named(x):
            return _by_jax(x)
        kind = _fields
    return (kind, *_NODES[kind].flatten(x))


class _ByJax:
    """Stands for the types that only JAX knows; the context is JAX's structure of one level."""


_NODES[_ByJax] = _Node(
    lambda x: ((), None), lambda xs, treedef: jax.tree.unflatten(treedef, list(xs))
)


def _by_jax(x: Any) -> tuple[Any, Iterable[Any], Any] | None:
    if x is None or isinstance(x, tuple):
        return None
    children, treedef = jax.tree.flatten(x, is_leaf=lambda y: y is not x)
    if len(children) == 1 and children[0] is x:
        return None
    return _ByJax, children, treedef


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves, is_leaf)


def _walk(x: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(x) else _take_apart(x)
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
    return _NODES[spec.type].unflatten([_build(leaves, c) for c in spec._children], spec.context)


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
    """Map a function over the leaves of these types; the others stay."""
    return tree_map(lambda x: func(x) if isinstance(x, kinds) else x, tree, is_leaf=is_leaf)


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
    node = _take_apart(tree)
    if node is None or node[0] is not spec.type:
        kind = type(tree) if node is None else node[0]
        raise ValueError(f"Type mismatch; expected {spec.type!r}, but got {kind!r}.")
    _, children, context = node
    below = list(children)
    if len(below) != spec.num_children:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got {len(below)}."
        )
    if spec.type in (dict, OrderedDict, defaultdict):
        mine = cast(Any, spec.context[1] if spec.type is defaultdict else spec.context)
        if set(mine) != set(tree):
            raise ValueError(f"Node keys mismatch; expected {mine!r}, but got {list(tree)!r}.")
        below = [tree[key] for key in mine]
    elif spec.context != context:
        raise ValueError(f"Node context mismatch; expected {spec.context!r}, but got {context!r}.")
    return [x for c, s in zip(below, spec._children, strict=True) for x in flatten_up_to(s, c)]
