"""Ops of the table that PyTorch makes of several others, each with a node of its own in the graph.

`record.apply` asks here for an op that is new at its place. The op's own body checks the
arguments (its errors are PyTorch's words for the function), then a function that `composes` has
entered records the ops that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from leafax.functional.program.op import TABLE, Op

from ..._core.trie import Mode, local
from ..._dispatch.check_call import check
from ..._dispatch.record import composed
from ..autocast.casts import operands

F = TypeVar("F", bound=Callable[..., Any])


def composes(*names: str) -> Callable[[F], F]:
    """Register, as a decorator, a function that records what the ops of these names are made of.

    The function takes the op's arguments, all by place but for those that are by name only. It
    returns None where the op is a single one after all.
    """

    def enter(fn: F) -> F:
        for name in names:
            assert TABLE[name] not in composed, name
            composed[TABLE[name]] = partial(_recorded, TABLE[name], fn)
        return fn

    return enter


def _cast(op: Op, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments as autocast has them for one op of this name."""
    bound = op.signature.bind(*args, **kwargs)
    return operands(op, bound.args), bound.kwargs


def _recorded(op: Op, compose: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what `compose` makes of the arguments."""
    if local.mode.autocast is not None:
        args, kwargs = _cast(op, args, kwargs)
    check(op, args, kwargs)
    bound = op.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return compose(*bound.args, **bound.kwargs)


def under_grad(mode: Mode, *tensors: Any) -> bool:
    """Tell whether autograd records what is done with any of these."""
    return bool(mode.dual or mode.grad and any(t is not None and t._tracked for t in tensors))
