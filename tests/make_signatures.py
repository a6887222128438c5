"""Write what PyTorch's argument parser takes: `facade/_signatures/signatures.txt`.

python tests/make_signatures.py

The parser says it itself: of several signatures in the error for a call without arguments, of a
single one in its complaints about one wrong argument after the other. Of a single one it says only
what is required, so what else there is comes from the operator's schema.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import torch

import leafax
from leafax._api import functions
from leafax._api.namespace_extra import FUNCTIONS as _EXTRA
from leafax.functional import TABLE

PATH = Path(__file__).parent.parent / "facade" / "_signatures" / "signatures.txt"
HEADER = """\
# Written by `python tests/make_signatures.py`; do not edit.
# A signature a line. `Tensor!` takes numbers too, `?` takes None, for `tuple of ints+` one int may
# stand; after `...` come arguments of which nothing is known.
"""
_KINDS = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "int", "SymInt": "int", "float": "float",
    "bool": "bool", "str": "str", "ScalarType": "torch.dtype", "Layout": "torch.layout",
    "Device": "torch.device", "Generator": "torch.Generator", "complex": "complex",
    "MemoryFormat": "torch.memory_format", "Tensor[]": "tuple of Tensors",
    "Tensor?[]": "tuple of Tensors", "float[]": "tuple of floats", "Scalar[]": "tuple of Scalars",
}  # fmt: skip
_RIGHT = {
    "Tensor": torch.ones(2, 2), "int": 1, "Number": 1, "bool": True, "str": "", "float": 0.5,
    "tuple of ints": (1, 1), "tuple of Tensors": [torch.ones(2, 2)] * 2,
}  # fmt: skip

_MORE = {"nonzero", "size", "stride"}  # they take more than their schemas say
_SPARSE = re.compile("sparse|indices|coalesce|smm|sspaddmm|values|dense")  # these raise in any case
# Methods that are written by hand, and functions of Python that hand on what they are given.
_WRITTEN = {
    "nn.functional.pad": 'Tensor input, tuple of ints pad, str mode = "constant", '
    "float? value = None",
    "copy_": "Tensor input, Tensor other, bool non_blocking = False",
    "is_contiguous": "Tensor input, *, torch.memory_format memory_format = 0",
    "numpy": "Tensor input, *, bool force = False",
    "requires_grad_": "Tensor input, bool requires_grad = True",
    "size": "Tensor input, int? dim = None",
    "stride": "Tensor input, int? dim = None",
    "cdist": "Tensor x1, Tensor x2, ...",
}
_PACKED = {"block_diag", "broadcast_tensors", "cartesian_prod"}  # Python makes one argument of all
_COMPOSED = {"cov", "corrcoef"}  # made of several ops here
_HIDDEN = {"to"}  # has forms that its parser does not tell
_BY_NAME = {"linalg_solve_triangular": ("upper",)}  # it counts these among the positional ones


def parameter(argument: str) -> str | None:
    """Return a parameter of a schema as the parser has it; None where it has no such type."""
    if argument == "*":
        return argument
    head, _, default = argument.partition("=")
    kind, _, name = head.rpartition(" ")
    kind = re.sub(r"\([a-z]!?( -> \*)?\)", "", kind)
    none = kind.endswith("?")
    kind = kind.removesuffix("?")
    sized = re.fullmatch(r"(int|SymInt)\[(\d*)\]", kind)
    if not sized and kind not in _KINDS:
        return None
    text = "tuple of ints" + "+" * bool(sized[2]) if sized else _KINDS[kind]
    name = "input" if name == "self" and kind == "Tensor" else name
    default = "None" if default == "[]" else default.replace(", ", ",")
    return f"{text}{'?' * none} {name}" + (f" = {default}" if default else "")


def schemas(name: str) -> list[tuple[str, list[str], list[str | None]]]:
    """Return the overload's name, the parameters and those as the parser has them, of each."""
    found = []
    for schema in map(str, torch._C._jit_get_schemas_for_operator(f"aten::{name}")):
        head, _, rest = schema.partition("(")
        inside = rest.rsplit(") -> ", 1)[0]
        parts = re.split(r",\s*(?![^\[\]()]*[\])])", inside)  # commas in brackets part none
        parts = [x.strip() for x in parts if x.strip()]
        found.append((head.partition(".")[2], parts, [parameter(x) for x in parts]))
    return found


def complaint(f: Any, *args: Any, **kwargs: Any) -> str:
    """Return what PyTorch says to these arguments."""
    try:
        f(*args, **kwargs)
    except Exception as error:
        return str(error)
    return ""


_UNASKED = {"out", "dtype", "layout", "device", "pin_memory", "requires_grad", "generator"}


def _named(parts: list[str]) -> dict[str, str]:
    """Return the types of parameters by name, but of those that schemas spell in their own way."""
    heads = [x.partition(" = ")[0].rpartition(" ") for x in parts if x != "*"]
    return {name: kind for kind, _, name in heads if name not in _UNASKED}


def _marked(line: str, operator: str) -> str:
    """Return a signature as the parser prints it, with the marks that it leaves out."""
    parts = line.split(", ")
    printed = _named(parts)
    parts = [re.sub("^bool (pin_memory|requires_grad)", r"bool? \1", x) for x in parts]
    for _, raw, read in schemas(operator):
        meant = _named([x for r, x in zip(raw, read, strict=True) if x and "!)" not in r])
        if {n: kind.rstrip("!?+") for n, kind in meant.items()} == printed:
            return ", ".join([_with_marks(x, meant) for x in parts])
    # Nothing says that no int may stand.
    return ", ".join(parts).replace("tuple of ints ", "tuple of ints+ ")


def _with_marks(part: str, meant: dict[str, str]) -> str:
    head, equals, default = part.partition(" = ")
    kind, _, name = head.rpartition(" ")
    return f"{meant.get(name, kind)} {name}{equals}{default}".lstrip()


def overloads(f: Any) -> list[str]:
    """Return the signatures that the parser tells; of a single one what is required."""
    text = complaint(f) or complaint(f, object())
    found = re.findall(r"^ \* \((.*)\)$", text, re.MULTILINE)
    if "but expected (" in text:
        found = [text.split("but expected (", 1)[1].rsplit(")", 1)[0]]
    if found:
        lines = [_marked(line, f.__name__) for line in found]
        numbers = any(line.startswith("Number") for line in found)
        if numbers or complaint(f, 1, torch.ones(2)):
            return lines
        return [re.sub(r"\bTensor (input|other)\b", r"Tensor! \1", line) for line in lines]
    names = re.findall(r'"(\w+)"', text) if "required positional argument" in text else []
    by_name = [n for n in names if n in _BY_NAME.get(f.__name__, ())]
    parts: list[str] = []
    given: dict[str, Any] = {}

    def complaint_about(name: str, value: Any, rest: Any) -> str:
        """Return the complaint about a value in this place, behind which only `rest` is."""
        whole = {**given, name: value, **{n: rest for n in names if n not in given and n != name}}
        keywords = {n: whole[n] for n in by_name}
        return complaint(f, *[whole[n] for n in names if n not in by_name], **keywords)

    for name in names:
        kind = re.search(
            rf"argument '{name}'(?: \(position \d+\))? must be (.*?), not ",
            complaint_about(name, object(), None),
        )
        if kind is None or kind[1] not in _RIGHT:
            return []
        of = kind[1]
        for other, mark in ((1, "!"), (None, "?")):
            if kind[1] == "Tensor" and f"argument '{name}'" not in complaint_about(
                name, other, object()
            ):
                of += mark
        parts += ["*"] if name in by_name and "*" not in parts else []
        parts.append(f"{of} {name}")
        given[name] = _RIGHT[kind[1]]
    return [", ".join(parts)] if parts else []


def signature(name: str, function: Any, known: list[str], method: bool) -> str | None:
    """Return the whole of a single signature, where its schema agrees with what is required."""
    if method and "takes no arguments" in complaint(function, 1):
        return "Tensor input"
    if len(known) > 1 or name in _MORE:
        return None
    if method and "invalid combination" in complaint(function, object()):
        return None
    text = complaint(function)
    required = re.findall(r'"(\w+)"', text) if "required positional" in text else []
    required = ["input"] * method + required
    fits: list[list[str]] = []
    out, several = False, False
    for overload, raw, read in schemas(name.removeprefix("nn.functional.").replace(".", "_")):
        inside = ", ".join(raw)
        parts = [x for x in read if x is not None]
        if "hacked" in overload or len(parts) < len(read):
            continue
        if name[-1] != "_" and "(a!)" in inside:
            several |= "(b!)" in inside or "(a!)[]" in inside
            out = True
            continue
        if [x.rpartition(" ")[2] for x in parts if x != "*" and " = " not in x] == required:
            fits.append(parts)
    if len(fits) > 1:  # a tensor may be a number: the parser leaves the number's schema out
        fits = [parts for parts in fits if "Number other" not in parts]
        fits = [[p.replace("Tensor other", "Tensor! other") for p in parts] for parts in fits]
    if len(fits) != 1 or not required:
        return None
    parts = fits[0]
    if any("pin_memory" in x for x in parts):
        parts.append("bool? requires_grad = False")
    if out and _takes_out(function, parts[method:]):
        parts += ["*"] * ("*" not in parts)
        parts.append(("tuple of Tensors" if several else "Tensor") + " out = None")
    line = ", ".join(parts)
    return line.replace("Tensor ", "Tensor! ", 1) if known and known[0][:8] == "Tensor! " else line


def _takes_out(function: Any, parts: list[str]) -> bool:
    """Return whether the parser knows `out`, which some schemas have for the dispatcher alone."""
    one = torch.ones(2, 2)
    required = [x.rpartition(" ")[0].rstrip("!?+") for x in parts if " = " not in x and x != "*"]
    try:
        function(*[_RIGHT.get(kind, one) for kind in required], out=one)
    except (TypeError, RuntimeError, IndexError, ValueError) as error:
        return "unexpected keyword argument 'out'" not in str(error)
    return True


def _numbers_too(lines: list[str], method: Any) -> list[str]:
    """Return a method's signatures, `Tensor!` where a number may stand for the first tensor."""

    def takes_one(line: str) -> bool:
        _, kind, *rest = line.split(", ")
        return kind.startswith(("Number", "float")) and all(" = " in x for x in rest if x != "*")

    if complaint(method, 1) or any(takes_one(line) for line in lines if "," in line):
        return lines
    return [re.sub(r"^(Tensor input, Tensor) ", r"\1! ", line) for line in lines]


def _theirs(name: str) -> Any:
    """Return PyTorch's function of that name, or None."""
    found: Any = torch._C._VariableFunctions if name in _PACKED else torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def signatures(name: str, in_full: bool) -> list[str]:
    """Return what is known of the signatures of a function, or of a method alone.

    Args:
      in_full: the signature of one that has a single one is wanted in full.
    """
    function = _theirs(name)
    method = function is None
    if method:
        function = getattr(torch.ones(2, 3), name, None)
    builtin = type(function).__name__ == "builtin_function_or_method"
    if not builtin and "." not in name and name not in _WRITTEN:
        return []
    lines = overloads(function)
    whole = _WRITTEN.get(name)
    if whole is None and builtin and in_full:
        whole = signature(name, function, lines, method)
    if method:
        lines = [f"Tensor input, {line}".removesuffix(", ") for line in lines]
        return _numbers_too([whole] if whole else lines if len(lines) > 1 else [], function)
    if whole or not any("Tensor" in line for line in lines) and name not in _EXTRA:
        return [whole] if whole else []
    if len(lines) == 1 and "*" not in lines[0]:  # what is required
        lines = [f"{lines[0]}, ..."]
    return lines


def source() -> str:
    """Return the text of the file."""
    public = {op.qualified for op in TABLE.values() if op.function}
    public |= {op.name for op in TABLE.values() if op.method}
    public |= {n for n in dir(leafax.Tensor) if not _SPARSE.search(n)}
    public |= {f"{x}.{n}" for x in ("fft", "linalg", "special") for n in getattr(leafax, x).__all__}
    in_full = {n for n in public if n[0] != "_"} | {*leafax._api.functions.__all__}
    at_hand = {*dir(leafax)} - {*leafax._core.missing_names.LATER_NAMES}
    names = {*functions._INPLACE, *at_hand, *({*dir(leafax.Tensor)} - {*dir(torch)})}
    names = {n for n in names | _COMPOSED | {*_EXTRA} if n[0] != "_"} | in_full
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [
            f"{name}({line})\n"
            for name in sorted(names)
            if name not in _HIDDEN
            for line in signatures(name, name in in_full)
        ]
    return HEADER + "".join(lines)


if __name__ == "__main__":
    PATH.write_text(source())
