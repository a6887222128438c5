"""Calls whose arguments PyTorch's parser would not take, refused in its words.

A call of a function or method is checked once for each kind of arguments, before it is recorded:
`x.sum(0, 1)` suits no signature, since 1 is no bool, and an op's body would not mind. A step that
the recorder has not seen before is checked as well, as far as its required arguments go, since not
all ops come from calls of a user's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np

from leafax.functional.program.number_fits import fits_int64, need_int64
from leafax.functional.program.op import TABLE, Op

from .._core.dtypes import python_number
from .._core.handle import Handle
from .._core.trie import Value
from .._core.view_ops import arguments_of_lens
from .deprecated_forms import OLDER
from .overload_errors import describe_mismatch
from .parser import bind, explain_refusal
from .table import (
    Parameter,
    known_signatures,
    method_signatures,
    parameters,
    required_signatures,
)

_NUMBERS = (int, float, complex, np.generic)
_SPLIT = ("Tensor input, int split_size_or_sections, int dim = 0",)
_Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_prechecked: set[Any] = set()  # calls that suit a signature, by the kinds of their arguments


def precheck(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], shown: str, method: bool = False
) -> None:
    """Raise PyTorch's TypeError where it would not let a call in.

    Args:
      name: of the function, `"fft.fft"`.
      shown: its name in messages, `"fft_fft"`.
      method: it was called as a method, whose first argument is the tensor itself.
    """
    key: Any = (name, method, *map(_kind, args))
    if kwargs:
        key += tuple([(k, _kind(x)) for k, x in kwargs.items()])
    if key in _prechecked:
        return
    error = find_error(name, args, kwargs, shown, method)
    if error is not None:
        raise error
    _prechecked.add(key)


def _kind(x: Any) -> Any:
    """Return all that the parser looks at of an argument."""
    of: Any = type(x)
    if isinstance(x, Handle):
        t: Any = x
        v = t._v
        if v.numel != 1:
            return Handle
        return (len(v.shape) == 0, v.dtype.kind, v.requires_grad)  # it may stand for a number
    if of is tuple or of is list:
        # Of a sequence it looks at the first element, or asks whether all are tensors.
        return (of, _kind(x[0]), frozenset(map(type, x))) if x else of
    return (of, x.ndim) if hasattr(x, "ndim") else of


def find_error(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], shown: str, method: bool = False
) -> TypeError | None:
    """Return PyTorch's error for the types of a call's arguments, None if it would take them.

    Args:
      name, shown, method: as of `precheck`.
    """
    lines = method_signatures(name) if method else known_signatures(name)
    args = args[method:]
    text = None
    if not lines:
        try:
            check_signatures(() if method else required_signatures(name), args, kwargs, shown)
        except TypeError as error:
            return error
    elif lines != ("",):
        text = explain_refusal(lines, args, kwargs, shown, more=name.rstrip("_") in OLDER)
    elif method and kwargs:
        text = f"TensorBase.{shown}() takes no keyword arguments"
    elif method and args:
        text = f"TensorBase.{shown}() takes no arguments ({len(args)} given)"
    return None if text is None else TypeError(text)


def find_op_error(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "", name: str = ""
) -> TypeError | None:
    """Return PyTorch's error for a call of an op as its caller wrote it.

    Args:
      method: the method that was called, whose first argument is the tensor itself.
      name: the function's, where it is not the op's.
    """
    if op.name == "split" and not any(isinstance(x, (int, tuple, list)) for x in args[1:2]):
        # PyTorch's is Python, and calls another one where it is given no int.
        if not any(isinstance(x, Handle) and not x._v.shape for x in args[1:2]):
            return find_error("split_with_sizes", args, {}, "split_with_sizes")
    if not known_signatures(name):
        name = method if method[-1:] == "_" and known_signatures(method) else op.qualified
    return find_error(name, args, kwargs, method or shown_name(op, name), bool(method))


@cache
def shown_name(op: Op, name: str = "") -> str:
    """Return the name of an op's function in PyTorch's messages: `linalg_inv`, `max`."""
    return op.name if op.namespace == "nn.functional" else (name or op.qualified).replace(".", "_")


def check(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise PyTorch's TypeError where the required arguments of a step suit no signature.

    Raises:
      OverflowError: for an int that has more than 64 bits.
    """
    lines = _required(op)
    if lines and (of_lens := arguments_of_lens(op)):  # through a view: its own follow the caller's
        args = args[:-of_lens]
    if op.name == "index_put" and len(args) > 1 and isinstance(args[1], tuple):
        # The whole slices of an index assignment are None.
        args = (args[0], tuple(a for a in args[1] if a is not None), *args[2:])
    if lines and not op.random:
        check_signatures(lines, args, kwargs, shown_name(op))
    elif op.numbers:
        for x in (*args, *kwargs.values()):
            refuse_wide("Number", x)


def check_signatures(
    lines: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> None:
    """Raise PyTorch's TypeError, for the function called `name`, where no signature suits."""
    fitting = next((x for x in lines if _fits(parameters(x), args, kwargs)), None)
    if fitting is not None:
        for p, x in zip(parameters(fitting), args, strict=False):
            refuse_wide(p.kind, x)
        if kwargs:
            kinds = {p.name: p.kind for line in lines for p in parameters(line)}
            for key, x in kwargs.items():
                refuse_wide(kinds.get(key, ""), x)
    elif lines:
        if len(lines) == 1:  # perhaps not all parameters are known
            known = parameters(lines[0])
            names = {p.name for p in known}
            args, kwargs = args[: len(known)], {k: x for k, x in kwargs.items() if k in names}
        text = explain_refusal(lines, args, kwargs, name)
        raise TypeError(text or describe_mismatch(lines, args, kwargs, name))


@cache
def takes_out(op: Op) -> bool:
    """Return whether PyTorch's function takes `out=`, as far as its signatures are known."""
    lines = known_signatures(op.qualified)
    return not lines or any(line.endswith(" out = None") for line in lines)


def with_numbers(op: Op, error: Exception, args: tuple[Any, ...], kwargs: Any) -> _Arguments | None:
    """Return the arguments with Python's numbers for those of NumPy and of tensors, where a number
    is wanted; None if there are none.

    Args:
      error: of the call with these arguments. If an op asked for the value of a tensor, every
        integer stands for one.
    """
    lines = _SPLIT if op.name == "split" else known_signatures(op.qualified)
    asked = isinstance(error, jax.errors.ConcretizationTypeError)
    bound = bind(lines, args, kwargs, op.name)
    if bound is None:
        kinds, named = ["Tensor"] + [""] * len(args), [""] * len(kwargs)
    else:
        kinds, named = [p.kind for p in bound[0]], [p.kind for p in bound[1]]
    if kinds[:1] == ["Tensor"]:
        kinds[0] = "self"
    new = tuple([_as_number(kind, x, asked) for kind, x in zip(kinds, args, strict=False)])
    values = [_as_number(kind, x, asked) for kind, x in zip(named, kwargs.values(), strict=True)]
    before, after = (*args, *kwargs.values()), (*new, *values)
    if all(x is y for x, y in zip(before, after, strict=True)):
        return None
    return new, dict(zip(kwargs, values, strict=True))


def _as_number(kind: str, x: Any, asked: bool) -> Any:
    """Return `with_numbers` of one argument, the same object where nothing is to be replaced."""
    if kind == "self":
        return x
    if type(x) in (tuple, list):
        parts = [_as_number(kind, part, asked) for part in x]
        same = all(a is b for a, b in zip(x, parts, strict=True))
        return x if same else type(x)(parts)
    if isinstance(x, np.generic):
        return python_number(x)
    if isinstance(x, Handle):
        t: Any = x
        if kind in ("int", "tuple of ints"):
            return int(t.item())
        if kind == "float" or asked and kind == "Number":
            return t.item()
        if asked and not t._v.shape and t._v.dtype.kind in "iu":
            return t.item()
    return x


@cache
def _required(op: Op) -> tuple[str, ...]:
    if TABLE.get(op.qualified) is not op and not op.overwrites:
        return ()  # made of several, by the recorder
    lines = required_signatures(op.qualified)
    return lines if lines and _in_order(op, lines[0]) else ()


def _in_order(op: Op, line: str) -> bool:
    """Return whether a signature has the op's order of parameters: `polygamma(n, x)` has not."""
    places = [
        op.parameters.index(p.name)
        for p in parameters(line)
        if not p.keyword and p.name in op.parameters
    ]
    return places == sorted(places)


def _fits(wanted: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if len(args) + len(kwargs) < sum(p.required for p in wanted):
        return False
    places = [p for p in wanted if not p.keyword]
    if any(p.name in kwargs for p in places[: len(args)]):
        return False
    if not all(_suits(p, x) for p, x in zip(places, args, strict=False)):
        return False
    return all(_suits(p, kwargs[p.name]) for p in wanted if p.name in kwargs)


def _suits(p: Parameter, x: Any) -> bool:
    """Return whether `x` may stand for the parameter; when in doubt it may."""
    if isinstance(x, (Handle, Value)):
        return p.kind not in ("tuple of Tensors", "str")
    if x is None:
        return not p.required or p.none
    if p.kind == "Tensor":
        return "!" in p.marks and isinstance(x, _NUMBERS)
    if p.kind == "tuple of Tensors":
        return isinstance(x, (tuple, list)) and all(isinstance(y, (Handle, Value)) for y in x)
    if p.kind in ("int", "tuple of ints"):
        return not isinstance(x, (str, float))
    if p.kind in ("float", "bool"):
        return not isinstance(x, str)
    return p.kind != "Number" or not isinstance(x, (str, tuple, list, dict))


def refuse_wide(kind: str, x: Any) -> None:
    """Raise where an int is too wide: a number has 64 bits with or without a sign, a dim with."""
    if type(x) is not int or fits_int64(x):
        return
    if kind in ("int", "tuple of ints"):
        need_int64(x)
    if kind in ("Number", "Tensor") and x < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if kind in ("Number", "Tensor") and x >= 1 << 64:
        raise OverflowError("int too big to convert")
