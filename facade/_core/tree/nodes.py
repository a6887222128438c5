"""The types that are nodes of trees, and how each is taken apart and put together."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax

from ..dtypes import Size


class NodeDef(NamedTuple):
    """The functions that take nodes of one type apart and put them together.

    Attributes:
      flatten_with_keys_fn: as `flatten_fn`, but with `(key, child)` for each child.
    """

    type: Any
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[Any], Any]] | None = None


def _tuple_flatten(x: Any) -> Any:
    return list(x), None


def _dict_flatten(x: Any) -> Any:
    return list(x.values()), list(x)


def _tuple_unflatten(xs: Iterable[Any], context: Any) -> Any:
    return tuple(xs)


def _list_unflatten(xs: Iterable[Any], context: Any) -> Any:
    return list(xs)


def _dict_unflatten(xs: Iterable[Any], keys: Any) -> Any:
    return dict(zip(keys, xs, strict=True))


DICTS = dict, OrderedDict, defaultdict
_BUILTIN = [
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten),
    NodeDef(list, _tuple_flatten, _list_unflatten),
    NodeDef(dict, _dict_flatten, _dict_unflatten),
    NodeDef(OrderedDict, _dict_flatten, lambda xs, keys: OrderedDict(zip(keys, xs, strict=True))),
    NodeDef(
        defaultdict,
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda xs, context: defaultdict(context[0], zip(context[1], xs, strict=True)),
    ),
    NodeDef(deque, lambda x: (list(x), x.maxlen), lambda xs, most: deque(xs, most)),
    NodeDef(Size, _tuple_flatten, _tuple_unflatten),
    # It stands for all named tuples, whose own type is their context.
    NodeDef(namedtuple, lambda x: (list(x), type(x)), lambda xs, made: made(*xs)),
]
NODES: dict[Any, NodeDef] = {node.type: node for node in _BUILTIN}
BUILTIN_TYPES: frozenset[Any] = frozenset(NODES)


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any], *, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:  # fmt: skip
    """Make a class a kind of node.

    Args:
      cls: the class; its subclasses are not.
      flatten_fn: returns an object's children and its context.
      unflatten_fn: makes an object of children and context.
      serialized_type_name, to_dumpable_context, from_dumpable_context: of structures that are
        written as JSON, which these are not.
      flatten_with_keys_fn: as `flatten_fn`, but with `(key, child)` for each child.
    """
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def node_type(x: Any) -> Any:
    """Return the type of a node as the table has it: that of all named tuples is `namedtuple`."""
    return namedtuple if is_named(x) else type(x)


def is_named(x: Any) -> bool:
    """Tell whether an object is a named tuple, or a class of them."""
    kind = x if isinstance(x, type) else type(x)
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def take_apart(x: Any) -> tuple[Any, Iterable[Any], Any] | None:
    """Return type, children and context of a node; None for a leaf."""
    kind: Any = type(x)
    if kind not in NODES:
        if not is_named(x):
            return _by_jax(x)
        kind = namedtuple
    return (kind, *NODES[kind].flatten_fn(x))


class ByJax:
    """Stands for the types that only JAX knows; the context is JAX's structure of one level."""


NODES[ByJax] = NodeDef(
    ByJax, lambda x: ((), None), lambda xs, treedef: jax.tree.unflatten(treedef, list(xs))
)


def _by_jax(x: Any) -> tuple[Any, Iterable[Any], Any] | None:
    if x is None or isinstance(x, tuple):
        return None
    children, treedef = jax.tree.flatten(x, is_leaf=lambda y: y is not x)
    if len(children) == 1 and children[0] is x:
        return None
    return ByJax, children, treedef
