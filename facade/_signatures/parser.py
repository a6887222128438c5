"""PyTorch's argument parser: binds a call's arguments to a signature, or says why it cannot.

Whatever else is wrong with a call, PyTorch looks at the types of its arguments first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.dtypes import device, dtype
from .._core.handle import Handle
from .._core.memory_format import layout, memory_format
from .._core.python_data import name_of_type
from .._core.trie import Value
from .overload_errors import describe_mismatch
from .table import Parameter, parameters

#: Other names that PyTorch takes for a parameter.
ALIASES = {
    "dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",),
}  # fmt: skip
_NUMBERS = (int, float, complex, np.number, np.bool_)


def explain_refusal(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
    more: bool = False,
) -> str | None:  # fmt: skip
    """Return what PyTorch says of arguments that suit none of a function's signatures.

    None if one does, and the elements of its sequences are what they must be.

    Args:
      lines: its signatures.
      name: what it is called in messages.
      more: there are others, which it does not print.
    """
    signatures = [parameters(x) for x in lines]
    if len(signatures) == 1 and not more:
        return find_mismatch(signatures[0], args, kwargs, name)
    for s in signatures:
        text = find_mismatch(s, args, kwargs, name)
        if text is None or "failed to unpack" in text:
            return text
        if text.startswith("expected Tensor as element"):
            return text
    count = len(args) + len(kwargs)
    plausible = [s for s in signatures if sum(p.required for p in s) <= count <= len(s)]
    if len(plausible) == 1:
        return find_mismatch(plausible[0], args, kwargs, name)
    return describe_mismatch(lines, args, kwargs, name)


def bind(
    lines: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> tuple[list[Parameter], list[Parameter]] | None:
    """Return the parameters that the arguments are for, by place and by name.

    Those of the first signature that they suit; None if there is none.
    """
    for line in lines:
        wanted = parameters(line)
        if find_mismatch(wanted, args, kwargs, name) is None:
            places = [p for p in wanted if not p.keyword]
            places += places[-1:] * (len(args) - len(places))  # sizes one by one
            names = {n: p for p in wanted for n in (p.name, *ALIASES.get(p.name, ()))}
            return places[: len(args)], [names[k] for k in kwargs]
    return None


def find_mismatch(
    wanted: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> str | None:
    """Return why one signature does not suit, None if it does."""
    most = sum(not p.keyword for p in wanted)
    spread = most == 1 and wanted[0].kind == "tuple of ints"
    if len(args) > most and not spread:
        return _too_many(wanted, most, args, name)
    left = set(kwargs)
    at, unpacked = 0, None
    for i, p in enumerate(wanted):
        named = at >= len(args)
        if named:
            key = next((n for n in (p.name, *ALIASES.get(p.name, ())) if n in kwargs), None)
            if key is None:
                if p.required:
                    return _missing(wanted[i:], name)
                continue
            x = kwargs[key]
            left.discard(key)
        else:
            if p.keyword:
                return _too_many(wanted, most, args, name)
            x = args[at]
        if spread and not named and _takes(p, args):
            at, unpacked = len(args), unpacked or _not_an_int(p, args, name)
            continue
        if x is None and p.none or _takes(p, x):
            at, unpacked = at + (not named), unpacked or _not_an_int(p, x, name)
            continue
        if p.kind == "tuple of Tensors" and isinstance(x, (tuple, list)):
            k = next(k for k, y in enumerate(x) if not isinstance(y, (Handle, Value)))
            return f"expected Tensor as element {k} in argument {i}, but got {name_of_type(x[k])}"
        if named:
            return f"{name}(): argument '{p.name}' must be {p.kind}, not {name_of_type(x)}"
        if len(args) > most:
            return _too_many(wanted, most, args, name)
        return _wrong(p, x, at + 1, name)
    if left:
        return _unexpected(wanted, kwargs, len(args), name)
    if spread and at < len(args):  # sizes in brackets, and others behind
        return _too_many(wanted, most, args, name)
    return unpacked


def _not_an_int(p: Parameter, x: Any, name: str) -> str | None:
    """Return the words about a sequence whose first element is an int and another one is none."""
    if p.kind != "tuple of ints" or not isinstance(x, (tuple, list)):
        return None
    for k, y in enumerate(x):
        if type(y) is not int and type(y) is not bool and not _is_int(y):
            return (
                f"{name}(): argument '{p.name}' failed to unpack the object at pos {k + 1} with "
                f'error "type must be tuple of ints,but got {name_of_type(y)}"'
            )
    return None


def _wrong(p: Parameter, x: Any, place: int, name: str) -> str:
    text = f"{name}(): argument '{p.name}' (position {place}) must be {p.kind}, "
    if p.kind == "tuple of ints" and isinstance(x, (tuple, list)):
        return text + f"but found element of type {name_of_type(x[0])} at pos 0"
    return text + f"not {name_of_type(x)}"


def _too_many(wanted: tuple[Parameter, ...], most: int, args: tuple[Any, ...], name: str) -> str:
    least = sum(p.required for p in wanted)
    n = len(args)
    if least != most:
        return f"{name}() takes from {least} to {most} positional arguments but {n} were given"
    s, were = "" if most == 1 else "s", "was" if n == 1 else "were"
    return f"{name}() takes {most} positional argument{s} but {n} {were} given"


def _missing(rest: tuple[Parameter, ...], name: str) -> str:
    names = [f'"{p.name}"' for p in rest if p.required]
    plural = "s" if len(names) == 1 else ""  # as PyTorch has it
    return f"{name}() missing {len(names)} required positional argument{plural}: {', '.join(names)}"


def _unexpected(
    wanted: tuple[Parameter, ...], kwargs: dict[str, Any], given: int, name: str
) -> str:
    names = [p.name for p in wanted]
    for k in kwargs:
        if k not in names:
            return f"{name}() got an unexpected keyword argument '{k}'"
        if names.index(k) < given:
            return f"{name}() got multiple values for argument '{k}'"
    return "invalid keyword arguments"


def _takes(p: Parameter, x: Any) -> bool:
    """Return whether PyTorch takes `x` for the parameter; when in doubt, it does."""
    test = _TESTS.get(p.kind)
    return test is None or test(p, x)


def _tensor(p: Parameter, x: Any) -> bool:
    return isinstance(x, (Handle, Value)) or "!" in p.marks and isinstance(x, _NUMBERS)


def _a_number(x: Any, kinds: str) -> bool:
    """Return whether a tensor may stand for a number."""
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
