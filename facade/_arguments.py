"""What PyTorch's argument parser says to arguments of the wrong types.

Asked once for each new kind of call, when the recorder has not seen the step before. It looks for
what can be no tensor, number or int in its place; the rest is for the ops to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from leafax.functional import TABLE, Op

from ._dtype import device, dtype
from ._handle import Handle
from ._lens import arguments_of_lens
from ._memory_format import memory_format
from ._trace import Value

_PREFIX = {"special": "special_", "linalg": "linalg_", "fft": "fft_"}
_NUMBERS = (int, float, complex, np.generic)


class Parameter(NamedTuple):
    """A parameter of a signature as PyTorch prints it, `int dim = None`."""

    kind: str
    name: str
    required: bool
    keyword: bool


def check(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], spelt: bool = False) -> None:
    """Raise PyTorch's TypeError where the arguments suit none of its signatures.

    Args:
      spelt: they are as the caller wrote them, so there must be a place for each.
    """
    lines = _signatures(op)
    if lines and (of_lens := arguments_of_lens(op)):  # through a view: its own follow the caller's
        args = args[:-of_lens]
    if op.name == "index_put" and len(args) > 1 and isinstance(args[1], tuple):
        # The whole slices of an index assignment are None.
        args = (args[0], tuple(a for a in args[1] if a is not None), *args[2:])
    if lines and not op.random:
        check_lines(lines, args, kwargs, _PREFIX.get(op.namespace, "") + op.name, spelt)


def check_lines(
    lines: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], said: str,
    spelt: bool = False,
) -> None:  # fmt: skip
    """Raise PyTorch's TypeError, for the function called `said`, where no signature suits."""
    spelt = spelt and len(lines) > 1  # of one signature only what is required is known
    if not any(_fits(parameters(x), args, kwargs, spelt) for x in lines):
        raise TypeError(complaint(lines, args, kwargs, said))


def parsed(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function composed of ops, whose arguments PyTorch's parser would look at first."""
    name = fn.__name__

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except (TypeError, AttributeError):
            from ._overloads import OVERLOADS

            if name in OVERLOADS:
                lines = tuple(OVERLOADS[name].split("\n"))
                try:
                    check_lines(lines, args, kwargs, name)
                except TypeError as wrong:
                    raise wrong from None
            raise

    return call


def reworded(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
) -> TypeError | None:
    """The error for a call as its caller wrote it, if that is what is wrong.

    Args:
      method: the method that was called, whose first argument is the tensor itself.
    """
    try:
        check(op, args, kwargs, spelt=True)
    except TypeError as error:
        if not method:
            return error
        lines = tuple(_without_self(x) for x in _signatures(op) if x.startswith("Tensor"))
        return TypeError(complaint(lines, args[1:], kwargs, method))
    return None


@cache
def _signatures(op: Op) -> tuple[str, ...]:
    from ._overloads import OVERLOADS

    if TABLE.get(op.qualified) is not op and not op.overwrites:
        return ()  # made of several, by the recorder
    text = OVERLOADS.get(op.qualified)
    return tuple(text.split("\n")) if text else ()


@cache
def parameters(line: str) -> tuple[Parameter, ...]:
    """The parameters of a signature."""
    found, keyword = [], False
    for part in line.split(", ") if line else ():
        if part == "*":
            keyword = True
            continue
        head, _, default = part.partition(" = ")
        kind, _, name = head.rpartition(" ")
        found.append(Parameter(kind, name, not default, keyword))
    return tuple(found)


def _without_self(line: str) -> str:
    """A function's signature as its method has it."""
    outs = ("Tensor out = None", "tuple of Tensors out = None")
    parts = [p for p in line.split(", ")[1:] if p not in outs]
    return ", ".join(parts[:-1] if parts[-1:] == ["*"] else parts)


def _fits(
    wanted: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], spelt: bool
) -> bool:
    if len(args) + len(kwargs) < sum(p.required for p in wanted):
        return False
    places = [p for p in wanted if not p.keyword]
    if spelt and (len(args) > len(places) or not {p.name for p in wanted} >= kwargs.keys()):
        return False
    if any(p.name in kwargs for p in places[: len(args)]):
        return False
    if not all(_suits(p, x) for p, x in zip(places, args, strict=False)):
        return False
    return all(_suits(p, kwargs[p.name]) for p in wanted if p.name in kwargs)


def _suits(p: Parameter, x: Any) -> bool:
    """Whether `x` may stand for the parameter; when in doubt it may."""
    if isinstance(x, (Handle, Value)):
        return p.kind not in ("tuple of Tensors", "str")
    if x is None:
        return not p.required or "?" in p.kind
    if p.kind.rstrip("!?") == "Tensor":
        return "!" in p.kind and isinstance(x, _NUMBERS)
    if p.kind == "tuple of Tensors":
        return isinstance(x, (tuple, list)) and all(isinstance(y, (Handle, Value)) for y in x)
    if p.kind in ("int", "tuple of ints"):
        return not isinstance(x, (str, float))
    if p.kind in ("float", "bool"):
        return not isinstance(x, str)
    return p.kind != "Number" or not isinstance(x, (str, tuple, list, dict))


def complaint(
    lines: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> str:
    """What PyTorch says of arguments that suit none of these signatures."""
    count = len(args) + len(kwargs)
    plausible = [x for x in lines if _required(x) <= count <= len(parameters(x))]
    if len(lines) == 1 or len(plausible) == 1:
        return _first_wrong(parameters((plausible or lines)[0]), args, kwargs, said)
    got = ", ".join([_type(a) for a in args] + [f"{k}={_type(a)}" for k, a in kwargs.items()])
    if kwargs and not args:
        got += ", "  # as PyTorch has it
    text = f"{said}() received an invalid combination of arguments - got ({got}), but expected "
    text += "one of:\n"
    for line in lines:
        text += f" * ({line.replace('Tensor!', 'Tensor')})\n"
        if line and len(line.split(", ")) == count and all(f" {k}" in line for k in kwargs):
            marked = ", ".join(_marks(parameters(line), args, kwargs))
            text += "      didn't match because some of the arguments have invalid types: "
            text += f"({marked})\n"
    return text


def _required(line: str) -> int:
    return sum(p.required for p in parameters(line))


def _first_wrong(
    wanted: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> str:
    """What is said where only one signature can be meant."""
    given = [(p, x, f" (position {i})") for i, (p, x) in enumerate(zip(wanted, args), 1)]  # noqa: B905
    given += [(p, kwargs[p.name], "") for p in wanted if p.name in kwargs]
    for p, x, place in given:
        if _suits(p, x):
            continue
        if p.kind == "tuple of Tensors" and isinstance(x, (tuple, list)):
            at = next(i for i, y in enumerate(x) if not isinstance(y, (Handle, Value)))
            return f"expected Tensor as element {at} in argument 0, but got {_type(x[at])}"
        kind = p.kind.rstrip("!?")
        return f"{said}(): argument '{p.name}'{place} must be {kind}, not {_type(x)}"
    most = sum(not p.keyword for p in wanted)
    if len(args) > most:
        least = sum(p.required and not p.keyword for p in wanted)
        return (
            f"{said}() takes from {least} to {most} positional arguments but {len(args)} were given"
        )
    missing = [f'"{p.name}"' for p in wanted[len(args) :] if p.required and p.name not in kwargs]
    plural = "s" if len(missing) == 1 else ""  # as PyTorch has it
    return (
        f"{said}() missing {len(missing)} required positional argument{plural}: "
        f"{', '.join(missing)}"
    )


def _marks(wanted: tuple[Parameter, ...], args: Any, kwargs: dict[str, Any]) -> list[str]:
    """The arguments' types, those that do not suit between exclamation marks."""
    by_name = {p.name: p for p in wanted}
    given = [("", p, x) for p, x in zip(wanted, args, strict=False)]
    given += [(f"{k}=", by_name[k], x) for k, x in kwargs.items() if k in by_name]
    return [k + (_type(x) if _named(p, x) else f"!{_type(x)}!") for k, p, x in given]


def _named(p: Parameter, x: Any) -> bool:
    """Whether the type is called as the parameter's is: a `Number` suits none."""
    named = {"int": ("int",), "float": ("float", "int")}.get(p.kind, (p.kind.rstrip("!?"),))
    return _type(x) in named


def _type(x: Any) -> str:
    if isinstance(x, Value):
        return "Tensor"
    kind = type(x)
    if kind in (dtype, device, memory_format):
        return f"torch.{kind.__name__}"
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
