"""PyTorch's argument parser, as far as it says why it takes no call like this one.

Asked once a call has failed: whatever is wrong with it, PyTorch looks at the types first, and says
so in the words written here. Where a signature suits, the error that there was stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._core.dtypes import device, dtype
from .._core.handle import Handle
from .._core.memory_format import layout, memory_format
from .._core.trie import Value
from .._core.typename import type_name
from .overload_errors import complaint

#: Other names that PyTorch takes for a parameter.
ALIASES = {
    "dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",),
}  # fmt: skip
_NUMBERS = (int, float, complex, np.number, np.bool_)


class Parameter(NamedTuple):
    """A parameter of a signature, `int dim = None`."""

    kind: str  # without its marks
    marks: str  # `!` takes numbers, `?` takes None, `+` one int for all
    name: str
    required: bool
    none: bool  # None may stand for it
    keyword: bool


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
        plain = kind.rstrip("!?+")
        marks = kind[len(plain) :]
        none = default == "None" or "?" in marks
        found.append(Parameter(plain, marks, name, not default, none, keyword))
    return tuple(found)


def refusal(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], said: str,
    more: bool = False,
) -> str | None:  # fmt: skip
    """What PyTorch says of arguments that suit none of a function's signatures.

    None if one does, and the elements of its sequences are what they must be.

    Args:
      lines: its signatures.
      said: what it is called in messages.
      more: there are others, which it does not print.
    """
    signatures = [parameters(x) for x in lines]
    if len(signatures) == 1 and not more:
        return _parse(signatures[0], args, kwargs, said)
    for s in signatures:
        text = _parse(s, args, kwargs, said)
        if text is None or "failed to unpack" in text:
            return text
        if text.startswith("expected Tensor as element"):
            return text
    count = len(args) + len(kwargs)
    plausible = [s for s in signatures if sum(p.required for p in s) <= count <= len(s)]
    if len(plausible) == 1:
        return _parse(plausible[0], args, kwargs, said)
    return complaint(lines, args, kwargs, said)


def bound(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> dict[str, Any] | None:
    """The arguments by the names of the first signature that they suit, None if there is none."""
    for line in lines:
        wanted = parameters(line)
        if _parse(wanted, args, kwargs, said) is None:
            names = {n: p.name for p in wanted for n in (p.name, *ALIASES.get(p.name, ()))}
            given = dict(zip([p.name for p in wanted], args, strict=False))
            return given | {names[k]: x for k, x in kwargs.items()}
    return None


def with_numbers(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], said: str,
    asked: bool = False,
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:  # fmt: skip
    """The arguments with numbers for the tensors that stand for some; None if none does.

    Args:
      asked: the op needs to know the value of a number that may be of any kind.
    """
    for line in lines:
        wanted = parameters(line)
        if _parse(wanted, args, kwargs, said) is None:
            break
    else:
        return None
    names = {n: p for p in wanted for n in (p.name, *ALIASES.get(p.name, ()))}
    places = [*wanted, *wanted[-1:] * len(args)]
    new = tuple(_as_number(p, x, asked) for p, x in zip(places, args, strict=False))
    named = {k: _as_number(names[k], x, asked) if k in names else x for k, x in kwargs.items()}
    before, after = (*args, *kwargs.values()), (*new, *named.values())
    same = all(x is y for x, y in zip(before, after, strict=True))
    return None if same else (new, named)


def _as_number(p: Parameter, x: Any, asked: bool = False) -> Any:
    if asked and p.kind == "Number" and isinstance(x, Handle):
        return x.item()  # type: ignore[attr-defined]
    if p.kind in ("int", "float", "tuple of ints"):
        if isinstance(x, Handle):
            t: Any = x
            return t.item() if p.kind == "float" else int(t.item())
        if isinstance(x, (tuple, list)) and any(isinstance(y, Handle) for y in x):
            return type(x)(_as_number(p, y) for y in x)
    return x


def refused_without_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], method: str
) -> str | None:
    """What Python says of arguments for a method that has none."""
    if kwargs:
        return f"TensorBase.{method}() takes no keyword arguments"
    return f"TensorBase.{method}() takes no arguments ({len(args)} given)" if args else None


def _parse(
    wanted: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> str | None:
    """Why one signature does not suit."""
    most = sum(not p.keyword for p in wanted)
    spread = most == 1 and wanted[0].kind == "tuple of ints"
    if len(args) > most and not spread:
        return _too_many(wanted, most, args, said)
    left = set(kwargs)
    at, unpacked = 0, None
    for i, p in enumerate(wanted):
        named = at >= len(args)
        if named:
            name = next((n for n in (p.name, *ALIASES.get(p.name, ())) if n in kwargs), None)
            if name is None:
                if p.required:
                    return _missing(wanted[i:], said)
                continue
            x = kwargs[name]
            left.discard(name)
        else:
            if p.keyword:
                return _too_many(wanted, most, args, said)
            x = args[at]
        if spread and not named and _takes(p, args):
            at, unpacked = len(args), unpacked or _not_an_int(p, args, said)
            continue
        if x is None and p.none or _takes(p, x):
            at, unpacked = at + (not named), unpacked or _not_an_int(p, x, said)
            continue
        if p.kind == "tuple of Tensors" and isinstance(x, (tuple, list)):
            k = next(k for k, y in enumerate(x) if not isinstance(y, (Handle, Value)))
            return f"expected Tensor as element {k} in argument {i}, but got {type_name(x[k])}"
        if named:
            return f"{said}(): argument '{p.name}' must be {p.kind}, not {type_name(x)}"
        if len(args) > most:
            return _too_many(wanted, most, args, said)
        return _wrong(p, x, at + 1, said)
    if left:
        return _unexpected(wanted, kwargs, len(args), said)
    return unpacked


def _not_an_int(p: Parameter, x: Any, said: str) -> str | None:
    """What is said of a sequence whose first element is an int and another one is none."""
    if p.kind != "tuple of ints" or not isinstance(x, (tuple, list)):
        return None
    for k, y in enumerate(x):
        if type(y) is not int and type(y) is not bool and not _is_int(y):
            return (
                f"{said}(): argument '{p.name}' failed to unpack the object at pos {k + 1} with "
                f'error "type must be tuple of ints,but got {type_name(y)}"'
            )
    return None


def _wrong(p: Parameter, x: Any, place: int, said: str) -> str:
    text = f"{said}(): argument '{p.name}' (position {place}) must be {p.kind}, "
    if p.kind == "tuple of ints" and isinstance(x, (tuple, list)):
        return text + f"but found element of type {type_name(x[0])} at pos 0"
    return text + f"not {type_name(x)}"


def _too_many(wanted: tuple[Parameter, ...], most: int, args: tuple[Any, ...], said: str) -> str:
    least = sum(p.required for p in wanted)
    n = len(args)
    if least != most:
        return f"{said}() takes from {least} to {most} positional arguments but {n} were given"
    s, were = "" if most == 1 else "s", "was" if n == 1 else "were"
    return f"{said}() takes {most} positional argument{s} but {n} {were} given"


def _missing(rest: tuple[Parameter, ...], said: str) -> str:
    names = [f'"{p.name}"' for p in rest if p.required]
    plural = "s" if len(names) == 1 else ""  # as PyTorch has it
    return f"{said}() missing {len(names)} required positional argument{plural}: {', '.join(names)}"


def _unexpected(
    wanted: tuple[Parameter, ...], kwargs: dict[str, Any], given: int, said: str
) -> str:
    names = [p.name for p in wanted]
    for k in kwargs:
        if k not in names:
            return f"{said}() got an unexpected keyword argument '{k}'"
        if names.index(k) < given:
            return f"{said}() got multiple values for argument '{k}'"
    return "invalid keyword arguments"


def _takes(p: Parameter, x: Any) -> bool:
    """Whether PyTorch takes `x` for the parameter; when in doubt, it does."""
    test = _TESTS.get(p.kind)
    return test is None or test(p, x)


def _tensor(p: Parameter, x: Any) -> bool:
    return isinstance(x, (Handle, Value)) or "!" in p.marks and isinstance(x, _NUMBERS)


def _a_number(x: Any, kinds: str) -> bool:
    """Whether a tensor may stand for a number."""
    if isinstance(x, Value):
        return True
    t: Any = x
    return t.dim() == 0 and not t.requires_grad and t._v.dtype.kind in kinds


def _number(p: Parameter, x: Any) -> bool:
    return _a_number(x, "biufcV") if isinstance(x, (Handle, Value)) else isinstance(x, _NUMBERS)


def _float(p: Parameter, x: Any) -> bool:
    if isinstance(x, (Handle, Value)):
        return _a_number(x, "biufcV")
    return isinstance(x, (int, float, np.integer, np.floating, np.bool_))


def _is_int(x: Any) -> bool:
    if isinstance(x, (bool, np.bool_)):
        return False
    if isinstance(x, Value):
        return True
    if isinstance(x, Handle):
        t: Any = x
        return t.numel() == 1 and t._v.dtype.kind in "iub"
    return hasattr(x, "__index__") and not (isinstance(x, np.ndarray) and x.ndim)


def _int(p: Parameter, x: Any) -> bool:
    if isinstance(x, Handle):
        return _a_number(x, "iu")
    return _is_int(x) and not isinstance(x, np.ndarray)


def _ints(p: Parameter, x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return not x or _is_int(x[0])
    return "+" in p.marks and _is_int(x)


def _floats(p: Parameter, x: Any) -> bool:
    return isinstance(x, (tuple, list)) and (not x or isinstance(x[0], _NUMBERS))


def _scalars(p: Parameter, x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(y, _NUMBERS) for y in x)


def _tensors(p: Parameter, x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(y, (Handle, Value)) for y in x)


def _is_dtype(p: Parameter, x: Any) -> bool:
    if isinstance(x, type):
        return x in (float, int, bool, complex)
    return isinstance(x, (dtype, np.dtype))


def _is_device(p: Parameter, x: Any) -> bool:
    return isinstance(x, (str, device)) or _is_int(x) and not isinstance(x, Handle)


_TESTS: dict[str, Callable[[Parameter, Any], bool]] = {
    "Tensor": _tensor, "Number": _number, "float": _float, "int": _int, "tuple of ints": _ints,
    "tuple of floats": _floats, "tuple of Tensors": _tensors, "torch.dtype": _is_dtype,
    "tuple of Scalars": _scalars,
    "torch.device": _is_device, "bool": lambda p, x: isinstance(x, bool),
    "str": lambda p, x: isinstance(x, str),
    "torch.memory_format": lambda p, x: isinstance(x, memory_format),
    "torch.layout": lambda p, x: isinstance(x, layout) and not isinstance(x, memory_format),
    "torch.Generator": lambda p, x: x is None or type(x).__name__ == "Generator",
}  # fmt: skip
