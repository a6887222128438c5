"""What PyTorch's argument parser says to arguments of the wrong types.

Asked once for each new kind of call, when the recorder has not seen the step before. It looks for
what can be no tensor, number or int in its place; the rest is for the ops to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
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
from .overload_errors import complaint
from .parser import ALIASES, Parameter, parameters, refusal, refused_without_arguments
from .parser import with_numbers as numbers_in

_PREFIX = {"special": "special_", "linalg": "linalg_", "fft": "fft_"}
_NUMBERS = (int, float, complex, np.generic)
_SPLIT = ("Tensor input, int split_size_or_sections, int dim = 0",)


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
    elif op.numbers:
        for x in (*args, *kwargs.values()):
            refuse_wide("Number", x)


def check_lines(
    lines: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], said: str,
    spelt: bool = False,
) -> None:  # fmt: skip
    """Raise PyTorch's TypeError, for the function called `said`, where no signature suits."""
    spelt = spelt and len(lines) > 1  # of one signature only what is required is known
    fitting = next((x for x in lines if _fits(parameters(x), args, kwargs, spelt)), None)
    if fitting is not None:
        for p, x in zip(parameters(fitting), args, strict=False):
            refuse_wide(p.kind, x)
        if kwargs:
            kinds = {p.name: p.kind for line in lines for p in parameters(line)}
            for name, x in kwargs.items():
                refuse_wide(kinds.get(name, ""), x)
        return
    if len(lines) == 1:
        known = parameters(lines[0])
        names = {p.name for p in known}
        args, kwargs = args[: len(known)], {k: x for k, x in kwargs.items() if k in names}
    raise TypeError(refusal(lines, args, kwargs, said) or complaint(lines, args, kwargs, said))


def parsed(
    fn: Callable[..., Any], name: str = "", method: bool = False, asks: bool = True
) -> Callable[..., Any]:
    """A function composed of ops, whose arguments PyTorch's parser would look at first.

    Args:
      name: of the function, where it has another.
      method: `fn` is the method of that function, or the one that writes in place.
      asks: look at the arguments before, for what `fn` would take in silence.
    """
    from .admit import admit

    name = name or fn.__name__
    said = fn.__name__ if method else name.replace(".", "_")

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if asks and (kwargs or len(args) != method):  # of a tensor alone nothing is to be said
                admit(name, args, kwargs, said, method)
            return fn(*args, **kwargs)
        except Exception as error:
            wrong = refused(name, args, kwargs, said, method)
            if wrong is None and not _exact(name) and not method:
                wrong = _roughly(name, error, args, kwargs)
            if wrong is not None:
                raise wrong from None
            named = spelt_out(fn, kwargs) if kwargs and isinstance(error, TypeError) else []
            if not named or named == list(kwargs):
                raise
        return fn(*args, **dict(zip(named, kwargs.values(), strict=True)))

    return call


def spelt_out(fn: Callable[..., Any], names: Iterable[str]) -> list[str]:
    """A function's own names for those of a call, which may be NumPy's."""
    code = fn.__code__  # type: ignore[attr-defined]  # a signature may be another function's
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = []
    for name in names:
        if name not in own:
            name = next((p for p, others in ALIASES.items() if name in others), name)
            if name == "input" and name not in own and own:
                name = own[0]
        found.append(name)
    return found


def is_known(name: str) -> bool:
    """Whether the signatures of a function are known in full."""
    return bool(_exact(name))


@cache
def takes_out(op: Op) -> bool:
    """Whether PyTorch's function takes `out=`, as far as its signatures are known."""
    lines = _exact(op.qualified)
    return not lines or any(line.endswith(" out = None") for line in lines)


def _roughly(
    name: str, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError | None:
    """The error where only what is required is known of a function."""
    from .overloads_data import OVERLOADS

    if name in OVERLOADS and isinstance(error, (TypeError, AttributeError)):
        try:
            check_lines(tuple(OVERLOADS[name].split("\n")), args, kwargs, name)
        except TypeError as wrong:
            return wrong
    return None


def reworded(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "", name: str = ""
) -> TypeError | None:
    """The error for a call as its caller wrote it, if that is what is wrong.

    Args:
      method: the method that was called, whose first argument is the tensor itself.
      name: the function's, where it is not the op's.
    """
    if name and _exact(name):
        return refused(name, args, kwargs, name.replace(".", "_"))
    said = method or _PREFIX.get(op.namespace, "") + op.name
    if op.name == "split" and not any(isinstance(x, (int, tuple, list)) for x in args[1:2]):
        # PyTorch's is Python, and calls another one where it is given no int.
        if not any(isinstance(x, Handle) and not x._v.shape for x in args[1:2]):
            return refused("split_with_sizes", args, {}, "split_with_sizes")
    known = method if method[-1:] == "_" and _exact(method) else op.qualified
    if _exact(known):
        return refused(known, args, kwargs, said, bool(method))
    try:
        check(op, args, kwargs, spelt=True)
    except TypeError as error:
        if not method:
            return error
        lines = _of_method(_signatures(op))
        return TypeError(complaint(lines, args[1:], kwargs, method))
    return None


def with_numbers(
    op: Op, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with numbers for the tensors that stand for some; None if none does.

    Args:
      error: of the call with these arguments.
    """
    lines = _SPLIT if op.name == "split" else _exact(op.qualified)
    asked = isinstance(error, jax.errors.ConcretizationTypeError)
    return numbers_in(lines, args, kwargs, op.name, asked)


def as_python(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a call that failed with Python's numbers for those of NumPy, and for the
    integers that are tensors where an op asked one for its value; None if there are none.
    """
    asked = isinstance(error, jax.errors.ConcretizationTypeError)
    new = (*args[:1], *[_number(x, asked) for x in args[1:]])
    named = {k: _number(x, asked) for k, x in kwargs.items()}
    given = (*args, *kwargs.values())
    if all(x is y for x, y in zip((*new, *named.values()), given, strict=True)):
        return None
    return new, named


def _number(x: Any, asked: bool) -> Any:
    """`as_python` of one argument, the same object where nothing in it is to be replaced."""
    if type(x) in (tuple, list):
        parts = [_number(part, asked) for part in x]
        same = all(a is b for a, b in zip(x, parts, strict=True))
        return x if same else type(x)(parts)
    if isinstance(x, np.generic):
        return python_number(x)
    if asked and isinstance(x, Handle):
        t: Any = x
        if not t._v.shape and t._v.dtype.kind in "iu":
            return t.item()
    return x


def refused(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], said: str, method: bool = False
) -> TypeError | None:
    """The error for a call of what PyTorch's parser stands before, if it would not let it in.

    Args:
      name: of the function, `"fft.fft"`.
      said: what messages call it.
      method: it was called as a method, whose first argument is the tensor itself.
    """
    lines = _exact(name)
    if method:
        lines = _of_method(lines)
        args = args[1:]
    if not lines:
        return None
    if lines == ("",):
        text = refused_without_arguments(args, kwargs, said) if method else None
    else:
        text = refusal(lines, args, kwargs, said, more=name in OLDER)
    return None if text is None else TypeError(text)


@cache
def _exact(name: str) -> tuple[str, ...]:
    """The signatures of a function in full; none where they are not known."""
    from .overloads_data import OVERLOADS
    from .signatures_data import SIGNATURES

    if name in SIGNATURES:
        return (SIGNATURES[name],)
    lines = tuple(OVERLOADS.get(name, "").split("\n"))
    return lines if len(lines) > 1 or name in OLDER else ()


@cache
def _signatures(op: Op) -> tuple[str, ...]:
    from .overloads_data import OVERLOADS

    if TABLE.get(op.qualified) is not op and not op.overwrites:
        return ()  # made of several, by the recorder
    lines = tuple(OVERLOADS.get(op.qualified, "").split("\n"))
    return lines if lines != ("",) and _in_order(op, lines[0]) else ()


def _in_order(op: Op, line: str) -> bool:
    """Whether a signature names its parameters in the op's order: `polygamma(n, x)` does not."""
    places = [
        op.parameters.index(p.name)
        for p in parameters(line)
        if not p.keyword and p.name in op.parameters
    ]
    return places == sorted(places)


_SELF = ("Tensor input", "Tensor! input")
_OF_FUNCTIONS = ("Tensor out = None", "tuple of Tensors out = None")


def _of_method(lines: tuple[str, ...]) -> tuple[str, ...]:
    """A function's signatures as its method has them, whose `input` is the tensor itself."""
    split = [x.split(", ") for x in lines if "torch.dtype out_dtype" not in x]
    return tuple(_without_self(x) for x in split if any(p in _SELF for p in x))


def _without_self(parts: list[str]) -> str:
    parts = [p for p in parts if p not in _SELF and p not in _OF_FUNCTIONS]
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


def _suits(p: Parameter, x: Any) -> bool:
    """Whether `x` may stand for the parameter; when in doubt it may."""
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
