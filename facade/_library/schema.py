"""Schemas of ops, `foo(Tensor x, int y=3, *, float? s=None) -> Tensor`, and arguments for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from .._core.dtypes import ALL, device, dtype
from .._core.handle import Handle
from .._core.memory_format import layout, memory_format

_DTYPES = {str(d).removeprefix("torch."): d for d in ALL}
_CLASSES: dict[str, Any] = {
    "Tensor": Handle, "int": int, "SymInt": int, "bool": bool, "str": str, "float": (int, float),
    "Scalar": (int, float, complex), "ScalarType": dtype, "Device": (device, str),
    "Layout": layout, "MemoryFormat": memory_format, "complex": (int, float, complex),
}  # fmt: skip


class AliasInfo(NamedTuple):
    """A mark of how an argument shares memory: `Tensor(a!)` is written to."""

    names: str
    is_write: bool


class Argument(NamedTuple):
    """A parameter or a result of an op.

    Attributes:
      type: as the schema says, without marks of memory: "Tensor?[]".
      default: its text, None where there is none.
    """

    name: str
    type: str
    default: str | None = None
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None

    @property
    def default_value(self) -> Any:
        """Return the default."""
        return None if self.default is None else _value(self.default, self.type)

    def has_default_value(self) -> bool:
        """Tell whether the argument may be left out."""
        return self.default is not None

    def __str__(self) -> str:
        kind, alias = self.type, self.alias_info
        if alias is not None:
            kind = kind.replace("Tensor", f"Tensor({alias.names}{'!' * alias.is_write})", 1)
        text = f"{kind} {self.name}" if self.name else kind
        return text if self.default is None else f"{text}={_spelt(self.default)}"


class FunctionSchema(NamedTuple):
    """The name, the parameters and the results of an op."""

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    @property
    def is_mutable(self) -> bool:
        """Tell whether the op writes to an argument."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    @property
    def whole_name(self) -> str:
        """Return the name with that of the overload."""
        return f"{self.name}.{self.overload_name}" if self.overload_name else self.name

    def __str__(self) -> str:
        parts = [str(a) for a in self.arguments]
        first = next((i for i, a in enumerate(self.arguments) if a.kwarg_only), None)
        if first is not None:
            parts.insert(first, "*")
        results = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            results = f"({results})"
        return f"{self.whole_name}({', '.join(parts)}) -> {results}"


def _spelt(default: str) -> str:
    """Return a default as PyTorch prints it: `1.0` is `1.`."""
    return re.sub(r"^(-?\d+\.)0$", r"\1", default)


@cache
def parse_schema(text: str) -> FunctionSchema:
    """Read a schema.

    Raises:
      RuntimeError: it is none.
    """
    found = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
    if found is None:
        raise RuntimeError(f"{text!r} is not a schema: name(Tensor x, int y=3) -> Tensor")
    name, overload, given, results = found.groups()
    arguments, kwarg_only = [], False
    for part in _split(given):
        if part == "*":
            kwarg_only = True
        else:
            arguments.append(_argument(part, kwarg_only))
    if results.startswith("("):
        results = results[1:-1]
    return FunctionSchema(
        name, overload or "", tuple(arguments), tuple(map(_argument, _split(results)))
    )


def _split(text: str) -> Iterator[str]:
    """Split at the commas that stand in no brackets and no quotes."""
    depth, quoted, start = 0, "", 0
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            yield text[start:i].strip()
            start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


def _argument(text: str, kwarg_only: bool = False) -> Argument:
    head, equals, default = text.partition("=")
    alias = re.search(r"\(([\w|*]+)\s*(!?)(?:\s*->\s*[\w|*]+)?\)", head)
    if alias is not None:
        head = head[: alias.start()] + head[alias.end() :]
    kind, _, name = head.strip().partition(" ")
    info = None if alias is None else AliasInfo(alias[1], bool(alias[2]))
    return Argument(name.strip(), kind, default.strip() if equals else None, kwarg_only, info)


def _value(text: str, kind: str) -> Any:
    if kind.startswith("ScalarType"):
        return _DTYPES.get(text.removeprefix("torch."))
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text[:1] in "'\"":
        return text[1:-1]
    if text[:1] == "[":
        return [_value(part, kind) for part in _split(text[1:-1])]
    try:
        return float(text) if kind.startswith("float") else int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments by place and those by name alone, defaults filled in.

    Raises:
      RuntimeError: they do not suit the schema.
    """
    places = [a for a in schema.arguments if not a.kwarg_only]
    if len(args) > len(places):
        raise RuntimeError(
            f"{schema.name}() takes {len(places)} positional argument(s) but {len(args)} was/were "
            f"given.  Declaration: {schema}"
        )
    left = dict(kwargs)
    first, named = [], {}
    for i, a in enumerate(schema.arguments):
        if not a.kwarg_only and i < len(args):
            x = args[i]
            if a.name in left:
                raise RuntimeError(
                    f"{schema.name}() got multiple values for argument '{a.name}'. Declaration: "
                    f"{schema}"
                )
        elif a.name in left:
            x = left.pop(a.name)
        elif a.default is None:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{a.name}'. Declaration: {schema}"
            )
        else:
            x = a.default_value
        if not _suits(x, a.type):
            raise RuntimeError(_mismatch(schema, a, i, x))
        if a.kwarg_only:
            named[a.name] = x
        else:
            first.append(x)
    if left:
        raise RuntimeError(
            f"Unknown keyword argument '{next(iter(left))}' for operator '{schema.name}'. Schema: "
            f"{schema}"
        )
    return tuple(first), named


def _suits(x: Any, kind: str) -> bool:
    if kind.endswith("?"):
        return x is None or _suits(x, kind[:-1])
    if kind.endswith("]"):
        inner, _, length = kind[:-1].rpartition("[")
        if length and not isinstance(x, (tuple, list)):
            return _suits(x, inner)
        return isinstance(x, (tuple, list)) and all(_suits(y, inner) for y in x)
    wanted = _CLASSES.get(kind)
    if wanted is None:
        return True
    return isinstance(x, wanted) and not (kind in ("int", "SymInt") and isinstance(x, float))


def _mismatch(schema: FunctionSchema, a: Argument, place: int, x: Any) -> str:
    python = a.type.replace("SymInt", "int")
    cast = f"Unable to cast {x!r} to Tensor"
    if a.type != "Tensor":
        cast = (
            f"Unable to cast Python instance of type {type(x)} to C++ type '?' (#define "
            "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
        )
    return (
        f"{schema.name}() Expected a value of type '{python}' for argument '{a.name}' but instead "
        f"found type '{type(x).__name__}'.\nPosition: {place}\nValue: {x!r}\n"
        f"Declaration: {schema}\nCast error details: {cast}"
    )
