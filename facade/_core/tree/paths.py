"""Where the leaves of a tree are: paths of keys, and maps that are told them."""

from __future__ import annotations

from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..dtypes import Size
from .nodes import DICTS, NODES, ByJax, take_apart
from .trees import (
    TreeSpec,
    chooser,
    flatten_up_to,
    tree_flatten,
    tree_leaves,
    tree_map_only,
    tree_unflatten,
)

IsLeaf = Callable[[Any], bool] | None


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list, a tuple or a deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item of a sequence at this key."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the item of a mapping at this key."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple or a dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute of an object at this key."""
        return getattr(obj, self.name)


Path = tuple[Any, ...]
_INDEXED = tuple, list, deque, Size, ByJax


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[Path, Any]], TreeSpec]:
    """Return the `(path, leaf)` of all leaves, and the tree's structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[Path, Any]]:
    """Return the `(path, leaf)` of all leaves."""
    return list(_walk((), tree, is_leaf))


def _walk(path: Path, x: Any, is_leaf: IsLeaf) -> Iterator[tuple[Path, Any]]:
    node = None if is_leaf is not None and is_leaf(x) else take_apart(x)
    if node is None:
        yield path, x
        return
    kind, children, context = node
    children = list(children)
    keys: list[Any]
    if kind is namedtuple:
        keys = [GetAttrKey(name) for name in x._fields]
    elif (with_keys := NODES[kind].flatten_with_keys_fn) is not None:
        keys = [key for key, _ in with_keys(x)[0]]
    elif kind in DICTS:
        keys = [MappingKey(k) for k in (context[1] if kind is defaultdict else context)]
    elif kind in _INDEXED:
        keys = [SequenceKey(i) for i in range(len(children))]
    else:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in zip(keys, children, strict=True):
        yield from _walk((*path, key), child, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """Map a function over a tree; it gets each leaf's path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [
        [p for p, _ in found],
        [x for _, x in found],
        *(flatten_up_to(spec, r) for r in rests),
    ]
    return tree_unflatten([func(*xs) for xs in zip(*columns, strict=True)], spec)


def keystr(kp: Path) -> str:
    """Write a path as Python would: `['a'][0]`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Path) -> Any:
    """Return the part of a tree at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a tree is a single leaf."""
    return is_leaf is not None and is_leaf(tree) or take_apart(tree) is None


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Yield the leaves, one after the other."""
    for _, x in _walk((), tree, is_leaf):
        yield x


def tree_map_only_(
    kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Call `func` for the leaves of these types; returns the tree itself."""
    tree_map_only(kinds, func, tree, is_leaf)
    return tree


def tree_all_only(
    kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether `pred` holds for all leaves of the types `kinds`."""
    return all(pred(x) for x in filter(chooser(kinds), tree_leaves(tree, is_leaf)))


def tree_any_only(
    kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether `pred` holds for any leaf of the types `kinds`."""
    return any(pred(x) for x in filter(chooser(kinds), tree_leaves(tree, is_leaf)))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    """Return the values of a dict with their keys, and what makes the dict anew."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten_with_keys(values: Any) -> tuple[list[Any], Any]:
    """Return the elements of a list or tuple with their places."""
    return [(SequenceKey(place), value) for place, value in enumerate(values)], None
