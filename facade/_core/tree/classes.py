"""Classes as nodes of trees: those of fields, and those that stand for constants."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from typing import Any

from .nodes import NODES, NodeDef
from .paths import GetAttrKey

CONSTANT_NODES: set[type] = set()  # classes whose objects are part of a tree's structure


def is_constant_class(cls: type) -> bool:
    """Tell whether a class's objects are part of a tree's structure."""
    return cls in CONSTANT_NODES


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a node that is a constant."""

    value: Any


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None, serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Make a dataclass, or a class that is made of its fields as one is, a kind of node.

    Fields that are None are no children.

    Args:
      cls: the class.
      field_names: the fields that it is made of; those of a dataclass if left out.
      drop_field_names: fields of a dataclass that `field_names` need not have.

    Raises:
      ValueError: these are not the fields.

    >>> import dataclasses, leafax
    >>> from leafax.utils import _pytree
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> _pytree.register_dataclass(Point)
    >>> _pytree.tree_map(lambda n: n + 1, Point(0, 1))
    Point(x=1, y=2)
    """
    names = _field_names(cls, field_names, drop_field_names or [])

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        values = {name: getattr(obj, name) for name in names}
        there = {name: value for name, value in values.items() if value is not None}
        return list(there.values()), [list(there), [n for n in names if n not in there]]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        there, missing = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(missing))

    def with_keys(obj: Any) -> tuple[list[Any], Any]:
        children, context = flatten(obj)
        keys = [GetAttrKey(name) for name in context[0]]
        return list(zip(keys, children, strict=True)), context

    _register(NodeDef(cls, flatten, unflatten, with_keys))


def _field_names(cls: Any, given: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if given is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to "
                f"initialize {cls}, as it is not a dataclass."
            )
        return given
    own = [f.name for f in dataclasses.fields(cls) if f.init]
    if given is None:
        return own
    # The order in which a set tells its elements depends on how it was made: this is PyTorch's.
    needed = set(own)
    needed.difference_update(dropped)
    missing, unexpected = needed - set(given), set(given) - needed
    if missing or unexpected:
        message = "field_names does not include all dataclass fields.\n"
        if missing:
            message += (
                f"Missing fields in `field_names`: {missing}. If you want to include these fields "
                "in the pytree, please add them to `field_names`, otherwise please add them to "
                "`drop_field_names`.\n"
            )
        if unexpected:
            message += (
                f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or "
                "add them to `drop_field_names`.\n"
            )
        raise ValueError(message)
    return given


def register_constant(cls: Any) -> None:
    """Make a class a kind of node without leaves: its objects are part of a tree's structure.

    Raises:
      TypeError: its objects cannot be compared, or not be hashed.
    """
    message = "register_constant(cls) expects `cls` to have a non-default `{}` implementation."
    if cls.__eq__ is object.__eq__:
        raise TypeError(message.format("__eq__"))
    if cls.__hash__ is None:
        raise TypeError(message.format("__hash__"))

    def flatten(x: Any) -> tuple[list[Any], Any]:
        return [], ConstantNode(x)

    _register(NodeDef(cls, flatten, lambda _, kept: kept.value, flatten))
    CONSTANT_NODES.add(cls)


def _register(node: NodeDef) -> None:
    if node.type in NODES:
        warnings.warn(
            f"{node.type} is already registered as pytree node. Overwriting the previous "
            "registration.",
            stacklevel=3,
        )
    NODES[node.type] = node
