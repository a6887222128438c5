"""Write the signatures of PyTorch's functions that have one signature.

python tests/make_signatures.py

Of those that have several the parser says them (make_overloads.py); of these it says only what is
required, so what else there is comes from the operators' schemas.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import make_overloads
import torch

import leafax
from leafax.functional import TABLE

_MORE = {"nonzero", "size", "stride"}  # they take more than their schemas say
_SPARSE = re.compile("sparse|indices|coalesce|smm|values|dense")  # these raise in any case
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
}
_PACKED = {"block_diag", "broadcast_tensors", "cartesian_prod"}  # Python makes one argument of all
PATH = Path(__file__).parent.parent / "facade" / "_signatures" / "signatures_data.py"
HEADER = '''# ruff: noqa: E501
"""Written by `python tests/make_signatures.py`; do not edit.

The signatures of functions that have one. `Tensor!` takes numbers too, `?` None; for
`tuple of ints+` one int may stand.
"""

SIGNATURES: dict[str, str] = {
'''


def signature(name: str, function: Any, method: bool = False) -> str | None:
    """The signature of a function, where its schema agrees with what its parser says."""
    if method and "takes no arguments" in make_overloads.complaint(function, 1):
        return "Tensor input"
    known = make_overloads.overloads(function)
    if len(known) > 1 or name in _MORE:
        return None
    if method and "invalid combination" in make_overloads.complaint(function, object()):
        return None
    text = make_overloads.complaint(function)
    required = re.findall(r'"(\w+)"', text) if "required positional" in text else []
    required = ["input"] * method + required
    operator = name.removeprefix("nn.functional.").replace(".", "_")
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{operator}")
    fits, out, several = [], False, False
    for schema in map(str, schemas):
        inside = schema.split("(", 1)[1].rsplit(") -> ", 1)[0]
        overload = schema.split("(", 1)[0].partition(".")[2]
        parts = [x if x == "*" else make_overloads.spelt(x) for x in make_overloads.split(inside)]
        if "hacked" in overload or None in parts:
            continue
        if name[-1] != "_" and "(a!)" in inside:
            several |= "(b!)" in inside or "(a!)[]" in inside
            out = True
            continue
        needed = [x.rpartition(" ")[2] for x in parts if x and x != "*" and " = " not in x]
        if needed == required:
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
    if known and known[0].startswith("Tensor! "):
        line = line.replace("Tensor ", "Tensor! ", 1)
    return line


def _takes_out(function: Any, parts: list[str]) -> bool:
    """Whether the parser knows `out`, which some schemas have for the dispatcher alone."""
    one = torch.ones(2, 2)
    values = {
        "int": 1, "float": 0.5, "bool": True, "str": "", "Number": 1, "tuple of ints": (1, 1),
        "tuple of Tensors": [one, one],
    }  # fmt: skip
    required = [x.rpartition(" ")[0].rstrip("!?+") for x in parts if " = " not in x and x != "*"]
    try:
        function(*[values.get(kind, one) for kind in required], out=one)
    except (TypeError, RuntimeError, IndexError, ValueError) as error:
        return "unexpected keyword argument 'out'" not in str(error)
    return True


def source() -> str:
    """The text of the module."""
    names = {op.qualified for op in TABLE.values() if op.function and op.name[0] != "_"}
    names |= set(leafax._api.functions.__all__)
    names |= {op.name for op in TABLE.values() if op.method and op.name[0] != "_"}
    names |= {n for n in dir(leafax.Tensor) if n[0] != "_" and not _SPARSE.search(n)}
    for space in ("fft", "linalg", "special"):
        names |= {f"{space}.{n}" for n in getattr(leafax, space).__all__}
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(names):
            function = make_overloads.theirs(name)
            if name in _PACKED:
                function = getattr(torch._C._VariableFunctions, name)
            if function is None and hasattr(torch.Tensor, name):  # there is the method alone
                function = getattr(torch.ones(2, 3), name)
                found = _WRITTEN.get(name)
                if found is None and type(function).__name__ == "builtin_function_or_method":
                    found = signature(name, function, method=True)
                if found is not None:
                    (found,) = make_overloads.numbers_too([found], function)
                    lines.append(f"    {json.dumps(name)}: {make_overloads.literal([found])},")
                continue
            found = _WRITTEN.get(name)
            if found is None and type(function).__name__ == "builtin_function_or_method":
                found = signature(name, function)
            if found is not None:
                lines.append(f"    {json.dumps(name)}: {make_overloads.literal([found])},")
    return HEADER + "\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(source())
