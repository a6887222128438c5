"""Ops that read or write at masks, and are given the positions where they are True as well."""

from __future__ import annotations

from functools import cache
from inspect import Parameter
from typing import Any

from leafax.functional.program.op import Op

from .handle import Handle


def marks(k: Any) -> bool:
    """Tell whether a key is a tensor that says where it is True, and does not number places."""
    return isinstance(k, Handle) and k._v.dtype.name in ("bool", "uint8")


@cache
def at_masks(op: Op) -> Op:
    """Make a variant of an indexing op that takes the places of the masks as last argument.

    What it is given as `indices` is what backward saves.
    """

    def fn(input: Any, indices: Any, *rest: Any) -> Any:
        *others, where = rest
        return op.fn(input, where, *others)

    def check(input: Any, indices: Any, *rest: Any) -> Any:
        *others, where = rest
        return op.check(input, where, *others) if op.check is not None else []

    own = list(op.signature.parameters.values())
    fn.__signature__ = op.signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, Parameter("places", Parameter.POSITIONAL_OR_KEYWORD, default=())]
    )
    return Op(fn, name=op.name, backward=op.backward, saves=op.saves, check=check)


def at(op: Op, where: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """Choose the op to call, and its last arguments, where masks among indices are these places."""
    return (at_masks(op), (where,)) if where else (op, ())
