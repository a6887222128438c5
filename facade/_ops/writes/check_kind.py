"""Kinds of `out=` that functions take, and PyTorch's errors for others."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._signatures.check_arguments import find_op_error, takes_out
from ..._signatures.named_results import shown_as

# Where `out` stands among PyTorch's parameters, where the table has others before it.
_PLACES = {"sort": 3, "linalg.svd": 3}


@cache
def said(op: Op) -> str:
    """Return what PyTorch's parser calls a function: `linalg_inv`, `special_erfcx`, `max`."""
    if op.name == "logsigmoid":
        return "log_sigmoid"
    name = op.qualified.removesuffix(".dim").removeprefix("nn.functional.")
    return name.replace(".", "_")


@cache
def results(op: Op) -> int:
    """Return how many tensors a function with a named result returns; 0 for all others."""
    cls = op.fn.__globals__.get(str(op.fn.__annotations__.get("return")))
    return len(getattr(cls, "_fields", ())) if isinstance(cls, type) else 0


@cache
def place(op: Op) -> int:
    """Return the position of `out` among PyTorch's parameters of a function."""
    return _PLACES.get(op.qualified, len(op.parameters))


def check_kind(op: Op, out: Any, given: tuple[Any, Any]) -> None:
    """Raise if `out=` is no tensor, not the tuple of them that the function writes, or not known.

    Args:
      given: the call's other arguments, by position and by name.
    """
    count = results(op)
    if takes_out(op) and isinstance(out, (tuple, list) if count else Handle):
        if count:
            check_parts(out, count, place(op))
        return
    wrong = find_op_error(op, given[0], {**given[1], "out": out})
    raise wrong or _mistaken(said(op), "tuple of Tensors" if count else "Tensor", out)


def _mistaken(name: str, wanted: str, out: Any) -> TypeError:
    return TypeError(f"{name}(): argument 'out' must be {wanted}, not {name_of_type(out)}")


def check_parts(out: Any, count: int | None, place: int, name: str = "") -> None:
    """Raise if `out=` is not a tuple of `count` tensors.

    Args:
      count: None if any number will do.
      place: of `out` among the function's parameters.
      name: the function's, where `out` may be no tuple at all.
    """
    if not isinstance(out, (tuple, list)):
        raise _mistaken(name, "tuple of Tensors", out)
    if count is not None and len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")
    for i, part in enumerate(out):
        if not isinstance(part, Handle):
            raise TypeError(
                f"expected Tensor as element {i} in argument {place}, but got {type(part).__name__}"
            )


def check_tensor(op: Op, out: Any) -> None:
    """Raise if `out=` is no tensor."""
    if not isinstance(out, Handle):
        raise _mistaken(said(op), "Tensor", out)


@cache
def written(cls: type) -> type:
    """Return the class of named results that were written into `out=`: `max_out` for `max`."""
    name = getattr(cls, "_torch_name", cls.__name__) + "_out"
    made: type = shown_as(name)(namedtuple(name, cls._fields))  # type: ignore[attr-defined]
    return made
