"""Write what types PyTorch's argument parser takes, for the functions of the op table.

python tests/make_overloads.py

The parser says it itself: of several signatures in the error for a call without arguments, of a
single one in its complaints about one wrong argument after the other.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import torch

import leafax
from leafax._api import functions, namespace_extra
from leafax.functional import TABLE

PATH = Path(__file__).parent.parent / "facade" / "_signatures" / "overloads_data.py"
HEADER = '''"""Written by `python tests/make_overloads.py`; do not edit.

What PyTorch's parser takes for each function, a signature a line. Of functions with one signature
these are the arguments that have no default. `Tensor!` takes numbers too, `Tensor?` None.
"""

OVERLOADS: dict[str, str] = {
'''
_KINDS = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "int", "SymInt": "int", "float": "float",
    "bool": "bool", "str": "str", "ScalarType": "torch.dtype", "Layout": "torch.layout",
    "Device": "torch.device", "Generator": "torch.Generator", "complex": "complex",
    "MemoryFormat": "torch.memory_format", "Tensor[]": "tuple of Tensors",
    "Tensor?[]": "tuple of Tensors", "float[]": "tuple of floats", "Scalar[]": "tuple of Scalars",
}  # fmt: skip
_RIGHT = {
    "Tensor": torch.ones(2), "int": 1, "Number": 1, "bool": True,
    "str": "a", "float": 1.0, "tuple of ints": (1,), "tuple of Tensors": (torch.ones(2),),
}  # fmt: skip

# Functions that are written in Python, where what is missing is Python's complaint.
_IN_PYTHON = {"block_diag": "tuple of Tensors tensors", "cdist": "Tensor x1, Tensor x2"}

# What is made of several ops here and asks for its types by `parsed`.
_COMPOSED = {"cov", "corrcoef"}

_HIDDEN = {"to"}  # has forms that its parser does not tell
_BY_NAME = {"linalg_solve_triangular": ("upper",)}


def spelt(argument: str) -> str | None:
    """A parameter of a schema as the parser has it; None where it has no such type."""
    head, _, default = argument.partition("=")
    kind, _, name = head.rpartition(" ")
    kind = re.sub(r"\([a-z]!?( -> \*)?\)", "", kind)
    none = kind.endswith("?")
    kind = kind.removesuffix("?")
    sized = re.fullmatch(r"(int|SymInt)\[(\d*)\]", kind)
    if sized:
        said = "tuple of ints" + "+" * bool(sized[2])
    elif kind in _KINDS:
        said = _KINDS[kind]
    else:
        return None
    name = "input" if name == "self" else name
    default = "None" if default == "[]" else default.replace(", ", ",")
    return f"{said}{'?' * none} {name}" + (f" = {default}" if default else "")


def split(text: str) -> list[str]:
    """The parameters of a schema: commas inside of brackets part none."""
    return [x.strip() for x in re.split(r",\s*(?![^\[\]()]*[\])])", text) if x.strip()]


def theirs(name: str) -> Any:
    """PyTorch's function of that name, or None."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


_UNASKED = {"out", "dtype", "layout", "device", "pin_memory", "requires_grad", "generator"}


def _named(parts: list[str]) -> dict[str, str]:
    """The types of parameters by name, but of those that every schema spells in its own way."""
    heads = [x.partition(" = ")[0].rpartition(" ") for x in parts if x != "*"]
    return {name: kind for kind, _, name in heads if name not in _UNASKED}


def marked(line: str, operator: str) -> str:
    """A signature as the parser prints it, with the marks that it leaves out."""
    parts = line.split(", ")
    printed = _named(parts)
    parts = [re.sub("^bool (pin_memory|requires_grad)", r"bool? \1", x) for x in parts]
    for schema in map(str, torch._C._jit_get_schemas_for_operator(f"aten::{operator}")):
        inside = schema.split("(", 1)[1].rsplit(") -> ", 1)[0]
        read = [x if x == "*" else spelt(x) for x in split(inside) if "!)" not in x]
        meant = _named([x for x in read if x is not None])
        if {n: kind.rstrip("!?+") for n, kind in meant.items()} == printed:
            return ", ".join([_with_marks(x, meant) for x in parts])
    # Nothing says that no int may stand.
    return ", ".join(parts).replace("tuple of ints ", "tuple of ints+ ")


def _with_marks(part: str, meant: dict[str, str]) -> str:
    head, equals, default = part.partition(" = ")
    kind, _, name = head.rpartition(" ")
    return f"{meant.get(name, kind)} {name}{equals}{default}".lstrip()


def complaint(f: Any, *args: Any, **kwargs: Any) -> str:
    """What PyTorch says to these arguments."""
    try:
        f(*args, **kwargs)
    except Exception as error:
        return str(error)
    return ""


def overloads(f: Any) -> list[str]:
    """The signatures of a function; nothing where the parser does not say."""
    text = complaint(f) or complaint(f, object())
    found = re.findall(r"^ \* \((.*)\)$", text, re.MULTILINE)
    if "but expected (" in text:
        found = [text.split("but expected (", 1)[1].rsplit(")", 1)[0]]
    if (
        found
        and not any(line.startswith("Number") for line in found)
        and not complaint(f, 1, torch.ones(2))
    ):
        found = [marked(line, f.__name__) for line in found]
        return [re.sub(r"\bTensor (input|other)\b", r"Tensor! \1", line) for line in found]
    if found:
        return [marked(line, f.__name__) for line in found]
    if "required positional argument" not in text:
        return []
    names = re.findall(r'"(\w+)"', text)
    # PyTorch counts those that are by name only among the positional ones.
    by_name = [n for n in names if n in _BY_NAME.get(f.__name__, ())]
    parts: list[str] = []
    given: dict[str, Any] = {}

    def said(name: str, value: Any, rest: Any) -> str:
        """The complaint about a value in this place, behind which only `rest` is."""
        whole = {**given, name: value, **{n: rest for n in names if n not in given and n != name}}
        keywords = {n: whole[n] for n in by_name}
        return complaint(f, *[whole[n] for n in names if n not in by_name], **keywords)

    for name in names:
        kind = re.search(
            rf"argument '{name}'(?: \(position \d+\))? must be (.*?), not ",
            said(name, object(), None),
        )
        if kind is None or kind[1] not in _RIGHT:
            return []
        of = kind[1]
        for other, mark in ((1, "!"), (None, "?")):
            if kind[1] == "Tensor" and f"argument '{name}'" not in said(name, other, object()):
                of += mark
        parts += ["*"] if name in by_name and "*" not in parts else []
        parts.append(f"{of} {name}")
        given[name] = _RIGHT[kind[1]]
    return [", ".join(parts)]


def numbers_too(lines: list[str], method: Any) -> list[str]:
    """The signatures of a method, `Tensor!` where a number may stand for the first tensor."""

    def takes_one(line: str) -> bool:
        _, kind, *rest = split(line)
        return kind.startswith(("Number", "float")) and all(" = " in x for x in rest if x != "*")

    if complaint(method, 1) or any(takes_one(line) for line in lines if "," in line):
        return lines
    return [re.sub(r"^(Tensor input, Tensor) ", r"\1! ", line) for line in lines]


def literal(found: list[str]) -> str:
    """The signatures as ruff would write them."""
    text = "\n".join(found)
    return repr(text) if '"' in text else json.dumps(text)


def source() -> str:
    """The text of the module."""
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {op.qualified for op in TABLE.values() if op.function and op.name[0] != "_"}
        names |= functions._INPLACE.keys()
        names |= {n for n in dir(leafax) if n[0] != "_"}
        for name in sorted(names | namespace_extra.FUNCTIONS.keys() | _COMPOSED):
            builtin = type(theirs(name)).__name__ == "builtin_function_or_method"
            found = overloads(theirs(name)) if builtin or "." in name else []
            found = [_IN_PYTHON[name]] if name in _IN_PYTHON else found
            if any("Tensor" in line for line in found) or name in namespace_extra.FUNCTIONS:
                lines.append(f"    {json.dumps(name)}: {literal(found)},")
        methods = {n for n in dir(leafax.Tensor) if n[0] != "_"} - {*dir(torch)} - _HIDDEN
        for name in sorted(methods):
            method = getattr(torch.ones(2, 3), name, None)
            if type(method).__name__ == "builtin_function_or_method":
                found = [f"Tensor input, {line}".removesuffix(", ") for line in overloads(method)]
                found = numbers_too(found, method)
                if len(found) > 1:
                    lines.append(f"    {json.dumps(name)}: {literal(found)},")
    lines.sort(key=lambda line: line.split('"')[1])
    return "# ruff: noqa: E501\n" + HEADER + "\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(source())
