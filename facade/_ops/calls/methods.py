"""Methods of tensors that follow from the op table: with sizes one by one, and in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.op import Op

from ..._core.handle import Handle
from ..._dispatch.known_calls import in_one_step
from ..._rules.inplace_activation_slopes import SLOPED, sloped
from ..._signatures.check_arguments import precheck
from ..._signatures.numeric_warnings import ANSWERS, answers
from ..._signatures.table import known_signatures
from ..writes.apply_inplace import apply_inplace, check_inplace, frozen
from .functions import call, find_meant_call, flattening, named, uniform

# Ops whose sizes or dims may come as separate arguments: x.view(2, 3).
VARIADIC = {
    "view", "reshape", "permute", "expand", "repeat", "flip", "tile", "sum_to_size", "new_zeros",
    "broadcast_to",
}  # fmt: skip
# Their dims may too, if there are more than one.
_SEVERAL = {"squeeze", "count_nonzero"}


def method(op: Op) -> Callable[..., Any]:
    """Return the Tensor method of an op."""
    if op.name == "flatten":
        return flattening(op, method=True)
    variadic, several = op.name in VARIADIC, op.name in _SEVERAL

    def fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = args
        try:
            if several and len(args) > 1:
                args = (args,)
            if variadic:
                args = _one_size(op, args, kwargs)
            precheck(op.qualified, (self, *given), kwargs, op.name, True)
            return call(op, (self, *args), kwargs)
        except Exception as error:
            written = (self, *given)
            meant = find_meant_call(op, error, (self, *args), kwargs, op.name, written=written)
            if meant is None:
                raise
            return fn(*meant[0], **meant[1])

    return named(fn if op.random else in_one_step(fn, op), op, op.name)


def _one_size(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return sizes or dims that came as separate arguments as one."""
    if len(args) == 1 and not isinstance(args[0], (int, np.integer, Handle)):
        return (tuple(args[0]),) if isinstance(args[0], tuple) else args  # also of a `Size`
    if args:
        return (tuple([a if type(a) is int else _one(a) for a in args]),)
    if not kwargs:
        raise TypeError(f"{op.name}(): there are no sizes")
    return ()


def _one(size: Any) -> int:
    if isinstance(size, float):
        raise TypeError("a size is an int")
    return int(size)


def inplace_method(op: Op) -> Callable[..., Any]:
    """Return the in-place method of an op, `name_`."""
    logical = op.name.startswith("logical_")
    quick = not op.random and op.name not in SLOPED
    name = op.name + "_"

    def fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = args, kwargs
        try:
            if not (logical or frozen(self)):  # PyTorch lets leaves be written to by these
                check_inplace(self)
            asked = name if known_signatures(name) else op.qualified
            precheck(asked, (self, *args), kwargs, name, True)
            args, kwargs = uniform(op, (self, *args), kwargs)
            if op.random:  # the key comes first
                of = sloped(op, *args[1:], **kwargs)
                return apply_inplace(of, self, *args[2:], _key=args[0], **kwargs)
            return apply_inplace(sloped(op, *args, **kwargs), *args, **kwargs)
        except Exception as error:
            meant = find_meant_call(op, error, (self, *given[0]), given[1], name)
            if meant is None:
                raise
            return fn(*meant[0], **meant[1])

    made: Any = in_one_step(fn) if quick else fn
    return named(_answering(made) if op.name in ANSWERS else made, op, name)


def _answering(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the in-place method of a comparison, which warns of what its cast drops."""

    def fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        method(self, *args, **kwargs)
        answers(self, (*args, *kwargs.values()))
        return self

    return fn
