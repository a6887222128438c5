"""Ops of the table that PyTorch makes of several others, each with a node of its own in the graph.

`_record.apply` asks here for an op that is new at its place. The op's own body checks the
arguments (its errors are PyTorch's words for the function), then a function that `composes` has
entered records the ops that it is made of. Where these give a plain tensor the way to it is kept
in the trie, so that from then on they are one step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax

from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Aval, Call, Slot, call_of

from ..._core.dtypes import dtype as dtype_class
from ..._core.handle import Handle
from ..._core.trie import Mode, local
from ..._signatures.check_arguments import check as check_arguments
from ..._tracing.infer import bare, refuse_inference_among
from ..._tracing.macro_steps import in_known_step, tensors_in
from ..._tracing.miss import key_part
from ..._tracing.record import composed, over_budget
from ..autocast.casts import operands

F = TypeVar("F", bound=Callable[..., Any])

_MOST = 4096  # calls whose arguments are remembered to be right
_right: dict[Any, Call] = {}  # and what knows of other lengths that they are right, too


def composes(*names: str) -> Callable[[F], F]:
    """Register, as a decorator, a function that records what the ops of these names are made of.

    The function takes the op's arguments, all by place but for those that are by name only. It
    returns None where the op is a single one after all.
    """

    def enter(fn: F) -> F:
        for name in names:
            assert TABLE[name] not in composed, name
            composed[TABLE[name]] = partial(_made, TABLE[name], fn)
        return fn

    return enter


def _made(op: Op, compose: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what `compose` makes of the arguments, in one step where that is known."""
    mode = local.mode
    if mode.autocast is not None:
        args, kwargs = _cast(op, args, kwargs)
    trace = local.trace
    key = ("composed", op, *[key_part(a, trace) for a in args])
    key += tuple([(k, key_part(a, trace)) for k, a in kwargs.items()])
    if not mode.plain or over_budget(trace):
        return _recorded(op, compose, args, kwargs)
    return in_known_step(key, lambda: _recorded(op, compose, args, kwargs), (args, kwargs))


def _cast(op: Op, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments as autocast has them for one op of this name."""
    bound = op.signature.bind(*args, **kwargs)
    return operands(op, bound.args), bound.kwargs


def _recorded(op: Op, compose: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    check(op, args, kwargs)
    bound = op.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return compose(*bound.args, **bound.kwargs)


def check(op: Op, args: Any, kwargs: Any) -> None:
    """Raise what an op raises for such arguments."""
    said = _facts((args, kwargs))
    try:
        if (op, said) in _right:
            return
    except TypeError:  # an argument of a kind that no op takes
        said = None
    check_arguments(op, args, kwargs)
    avals: list[Aval] = []
    given, named = _template(args, avals), _template(kwargs, avals)
    call = Call(op, given, named) if said is None else call_of(op, given, named)
    try:
        call.abstract(tuple(avals))
    except jax.errors.JAXTypeError:
        raise
    except Exception as error:
        # What these are composed of saves its operands before it looks whether they fit.
        if op.name.startswith("conv") and not str(error).startswith("Expected"):
            refuse_inference_among(tensors_in((args, kwargs)))
        raise bare(error) from None
    if said is not None:
        if len(_right) >= _MOST:
            _right.clear()
        _right[op, said] = call


def _template(a: Any, avals: list[Aval]) -> Any:
    if isinstance(a, Handle):
        avals.append(Aval(tuple(a.shape), a._v.dtype))
        return Slot(len(avals) - 1)
    if type(a) in (tuple, list):
        return type(a)(_template(x, avals) for x in a)
    if isinstance(a, dict):
        return {k: _template(x, avals) for k, x in a.items()}
    return a.np if isinstance(a, dtype_class) else a


def _facts(a: Any) -> Any:
    """Return what a check of arguments depends on."""
    if isinstance(a, Handle):
        return (Handle, tuple(a.shape), a._v.dtype)
    if isinstance(a, (tuple, list)):
        return (type(a), *map(_facts, a))
    if isinstance(a, dict):
        return (dict, *((k, _facts(x)) for k, x in a.items()))
    return (type(a), repr(a) if isinstance(a, float) else a)


def under_grad(mode: Mode, *tensors: Any) -> bool:
    """Tell whether autograd records what is done with any of these."""
    return bool(mode.dual or mode.grad and any(t is not None and t._tracked for t in tensors))
