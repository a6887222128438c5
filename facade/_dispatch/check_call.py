"""Raising what an op's body raises for some arguments, without recording it."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional.program.op import Op
from leafax.functional.program.program import Aval, Call, Slot, call_of

from .._core.dtypes import dtype as dtype_class
from .._core.handle import Handle, tensors_in
from .._signatures.check_arguments import check as check_arguments
from .._tracing.infer import bare, refuse_inference_among

# Which errors of these PyTorch raises before it asks a view for its history.
_LOOKING_FIRST: dict[str, type[Exception]] = {
    **dict.fromkeys(("nll_loss", "nll_loss2d"), ValueError),
    **dict.fromkeys(("pad", "interpolate", "max_pool1d", "_native_batch_norm"), Exception),
}

_MOST = 4096  # calls whose arguments are remembered to be right
_right: dict[Any, Call] = {}  # and what knows of other lengths that they are right, too


def check(op: Op, args: Any, kwargs: Any) -> None:
    """Raise the error that an op raises for these arguments, if any."""
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
            refuse_inference_among([*tensors_in((args, kwargs))])
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
    """Return the facts about arguments that their check depends on."""
    if isinstance(a, Handle):
        return (Handle, tuple(a.shape), a._v.dtype)
    if isinstance(a, (tuple, list)):
        return (type(a), *map(_facts, a))
    if isinstance(a, dict):
        return (dict, *((k, _facts(x)) for k, x in a.items()))
    return (type(a), repr(a) if isinstance(a, float) else a)


def look_first(op: Op, args: Any, kwargs: Any) -> None:
    """Raise those errors of an op that PyTorch raises before it looks at a view's history."""
    if op.name in _LOOKING_FIRST:
        try:
            check(op, args, kwargs)
        except Exception as error:
            if isinstance(error, _LOOKING_FIRST[op.name]):
                raise
