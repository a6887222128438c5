"""PyTorch's signatures, as its argument parser prints them: the file `signatures.txt`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from .deprecated_forms import OLDER

_FILE = Path(__file__).with_name("signatures.txt")
_OPEN = ", ..."  # ends a signature of which only what is required is known
_SELF = ("Tensor input", "Tensor! input")
_OF_FUNCTIONS = ("Tensor out = None", "tuple of Tensors out = None")


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
    """Return the parameters of a signature."""
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


@cache
def _read() -> dict[str, tuple[str, ...]]:
    """Return the lines of the file by the function's name."""
    found: dict[str, tuple[str, ...]] = {}
    for line in _FILE.read_text("utf-8").splitlines():
        if line[0] != "#":
            name, _, rest = line.partition("(")
            found[name] = (*found.get(name, ()), rest[:-1])
    return found


def known_signatures(name: str) -> tuple[str, ...]:
    """Return the signatures of a function; none where they are not known in full."""
    lines = _read().get(name, ())
    return () if lines and lines[0].endswith(_OPEN) else lines


@cache
def required_signatures(name: str) -> tuple[str, ...]:
    """Return the signatures of a function; of a single one the parameters without a default."""
    lines = _read().get(name, ())
    if len(lines) != 1 or name in OLDER:
        return lines
    parts = lines[0].removesuffix(_OPEN).split(", ")
    return (", ".join([part for part in parts if " = " not in part]).removesuffix(", *"),)


@cache
def method_signatures(name: str) -> tuple[str, ...]:
    """Return a function's signatures as its method has them, whose `input` is the tensor itself."""
    split = [x.split(", ") for x in known_signatures(name) if "torch.dtype out_dtype" not in x]
    return tuple(_without_self(x) for x in split if any(p in _SELF for p in x))


def _without_self(parts: list[str]) -> str:
    parts = [p for p in parts if p not in _SELF and p not in _OF_FUNCTIONS]
    return ", ".join(parts[:-1] if parts[-1:] == ["*"] else parts)
