"""Write the type stubs of leafax's functions and of `Tensor` from the op table.

python tests/make_stubs.py

Functions and methods are made when leafax is imported, so editors and type checkers cannot see
them; the stubs beside the modules are what they read. `signatures/test_stubs.py` says whether they
are current.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import leafax
import leafax.distributed.tensor  # which gives tensors more attributes
from leafax._signatures.check_arguments import takes_out
from leafax.functional import TABLE, Op

FACADE = Path(__file__).parent.parent / "facade"
# Builtins under names that neither the module's dtypes nor Tensor's methods hide.
_BUILTINS = ("bool", "complex", "float", "int", "str")
_SIMPLE = {f: "_" + f for f in _BUILTINS} | {
    "Array": "Tensor", "Any": "Any", "None": "None", "tuple": "tuple", "list": "list",
    "dict": "dict", "Sequence": "Sequence", "Callable": "Callable", "Size": "_Size",
    "Ints": "_Ints", "Dims": "_Ints", "dtype": "_dtype", "device": "_device",
    "Tensor": "Tensor", "object": "Any",
}  # fmt: skip
_TENSORS = set(
    "input self tensor target weight bias mask index source src mat1 mat2 vec A B x1 x2 x3 grid "
    "query key value_".split()
)
_OPERANDS = {"other", "value", "min", "max", "exponent", "end", "alpha", "beta"}
# Functions written in the facade whose answer is not one tensor; the others' is.
_ANSWERS = {
    "is_tensor": "_bool", "is_floating_point": "_bool", "is_complex": "_bool", "numel": "_int",
    "is_nonzero": "_bool", "is_same_size": "_bool", "is_conj": "_bool", "is_neg": "_bool",
    "equal": "_bool",
    "allclose": "_bool", "can_cast": "_bool", "is_inference": "_bool", "broadcast_shapes": "_Size",
    "promote_types": "_dtype", "result_type": "_dtype", "get_default_dtype": "_dtype",
    "set_default_dtype": "None", "is_contiguous": "_bool", "is_signed": "_bool", "dim": "_int",
    "ndimension": "_int", "nelement": "_int", "element_size": "_int", "data_ptr": "_int",
    "storage_offset": "_int", "get_device": "_int",
    **dict.fromkeys(
        ("max", "min", "median", "nanmedian", "unique", "unique_consecutive", "norm", "where",
         "item", "tolist", "numpy", "jax", "type", "size", "stride", "backward", "lu", "nonzero",
         "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "meshgrid"), "Any"),
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d"), "Any"),
    **dict.fromkeys(
        ("split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_chunk",
         "unsafe_split", "gradient", "split_copy", "split_with_sizes_copy", "unbind_copy",
         "unravel_index", "svd_lowrank", "pca_lowrank", "native_batch_norm", "histogram",
         "histogramdd"), "tuple[Tensor, ...]"),
}  # fmt: skip
_ANSWERS["histogramdd"] = "tuple[Tensor, tuple[Tensor, ...]]"
_HEADER = '''"""Written by `python tests/make_stubs.py`; do not edit."""

'''
_IMPORTS = """from collections.abc import Callable as Callable
from collections.abc import Sequence as Sequence
from typing import Any as Any

"""
_ALIASES = "\n".join(f"_{name} = builtins.{name}" for name in _BUILTINS) + "\n"


def written(annotation: Any) -> str:
    """A body's annotation in the stubs' names; `Any` for what has none there."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return "Any"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            return "_dtype | None" if "np.dtype" in text else "Any"
        if isinstance(node, ast.Name):
            if node.id not in _SIMPLE:
                return "Any"
            node.id = _SIMPLE[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return "Any"
    return ast.unparse(tree)


def _parameter(p: inspect.Parameter) -> str:
    kind = written(p.annotation)
    if kind == "Any" and p.name in _TENSORS:
        kind = "Tensor" if p.default is p.empty else "Tensor | None"
    elif kind == "Any" and p.name in _OPERANDS:
        kind = "Tensor | _complex" if p.default is p.empty else "Tensor | _complex | None"
    if p.default is None and kind not in ("Any", "None") and "None" not in kind:
        kind += " | None"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return f"{star}{p.name}: {kind}" + ("" if star or p.default is p.empty else " = ...")


def parameters(
    fn: Any, op: Op | None, method: bool, extra: tuple[str, ...] = (), variadic: bool = False
) -> str:
    """The parameters of a function or method as they are written in a stub."""
    try:
        given = list((op.signature if op else inspect.signature(fn)).parameters.values())
    except (TypeError, ValueError):
        given = []
    if op is not None and op.random:
        given, extra = given[1:], ("generator: Any = ...", *extra)
    if method and given:
        given = given[1:]
    first = [p for p in given if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
    only = [p for p in given if p.kind is p.KEYWORD_ONLY]
    rest = [p for p in given if p.kind is p.VAR_KEYWORD]
    parts = ["self"] if method else []
    if variadic:
        parts.append("*size: Any")
    else:
        parts += [_parameter(p) for p in first]
    named = [_parameter(p) for p in only] + [e for e in extra if not rest]
    if named and not variadic and not any(p.kind is p.VAR_POSITIONAL for p in first):
        parts.append("*")
    parts += named + [_parameter(p) for p in rest]
    return ", ".join(parts)


def answer(name: str, fn: Any, op: Op | None, results: bool) -> str:
    """Return the annotation of a function's result."""
    if op is not None:
        text = str(op.signature.return_annotation)
        cls = op.fn.__globals__.get(text)
        if isinstance(cls, type) and hasattr(cls, "_fields"):
            short = getattr(cls, "_torch_name", None)
            return f"return_types.{short}" if short and results else "tuple[Tensor, ...]"
        kind = written(text)
        return kind if kind != "Any" else _ANSWERS.get(name, "Tensor")
    if name in _ANSWERS:
        return _ANSWERS[name]
    try:
        kind = written(inspect.signature(fn).return_annotation)
    except (TypeError, ValueError):
        return "Any"
    return "Tensor" if kind == "Any" else kind


def _line(name: str, inside: str, result: str, indent: str = "") -> str:
    return f"{indent}def {name}({inside}) -> {result}: ..."


def function_lines(names: Any, home: Any, prefix: str) -> list[str]:
    """Stubs of a module's functions."""
    lines = []
    for name in sorted(names):
        fn = getattr(home, name)
        if isinstance(fn, (type, types.ModuleType)) or not callable(fn):
            continue
        op = _op_of(fn, (prefix + name, name))
        extra = ("out: Any = ...",) if op is not None and takes_out(op) else ()
        lines.append(_line(name, parameters(fn, op, False, extra), answer(name, fn, op, True)))
    return lines


def _op_of(fn: Any, names: tuple[str, ...]) -> Op | None:
    """The op that a function was made from, if it was."""
    signature = getattr(fn, "__signature__", None)
    return next(
        (TABLE[n] for n in names if n in TABLE and TABLE[n].signature is signature), None
    ) or next((op for op in TABLE.values() if signature is op.signature), None)


def _method_lines() -> list[str]:
    from leafax._ops.calls.methods import VARIADIC

    lines = []
    for name in sorted(n for n in dir(leafax.Tensor) if not n.startswith("_")):
        value = inspect.getattr_static(leafax.Tensor, name)
        if isinstance(value, property):
            kind = written(value.fget.__annotations__.get("return", inspect.Parameter.empty))
            kind = {"dtype": "_dtype", "shape": "_Size", "device": "_device"}.get(name, kind)
            kind = "Tensor" if name in ("T", "mT", "H", "mH", "real", "imag", "data") else kind
            kind = "Tensor | None" if name == "grad" else kind
            lines += ["    @property", _line(name, "self", kind, "    ")]
            if value.fset is not None and value.fset.__module__ != "leafax._core.readonly":
                lines += [f"    @{name}.setter", _line(name, "self, value: Any", "None", "    ")]
            continue
        if isinstance(value, classmethod | staticmethod) or not callable(value):
            lines.append(f"    {name}: Any")
            continue
        op = _op_of(value, (name, name.rstrip("_")))
        inside = parameters(value, op, True, variadic=name in VARIADIC)
        result = answer(name, value, op, True) if not name.endswith("_") else "Tensor"
        lines.append(_line(name, inside, result, "    "))
    return lines


_UNARY = "abs neg pos invert".split()
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_COMPARED = "lt le gt ge".split()


def _operator_lines() -> list[str]:
    lines = [f"    def __{n}__(self) -> Tensor: ..." for n in _UNARY]
    for n in _BINARY:
        for form in ("", "r", "i") if n not in ("matmul",) else ("", "r"):
            if hasattr(leafax.Tensor, f"__{form}{n}__"):
                lines.append(f"    def __{form}{n}__(self, other: Any) -> Tensor: ...")
    lines += [f"    def __{n}__(self, other: Any) -> Tensor: ..." for n in _COMPARED]
    lines += [
        f"    def __{n}__(self, other: Any) -> Tensor: ...  # type: ignore[override]"
        for n in ("eq", "ne")
    ]
    return lines + [
        "    def __hash__(self) -> _int: ...",
        "    def __bool__(self) -> _bool: ...",
        "    def __int__(self) -> _int: ...",
        "    def __float__(self) -> _float: ...",
        "    def __complex__(self) -> _complex: ...",
        "    def __index__(self) -> _int: ...",
        "    def __len__(self) -> _int: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...",
        "    def __contains__(self, x: Any) -> _bool: ...",
        "    def __getitem__(self, index: Any) -> Tensor: ...",
        "    def __setitem__(self, index: Any, value: Any) -> None: ...",
        "    def __array__(self, dtype: Any = ...) -> Any: ...",
        "    def __jax_array__(self) -> Any: ...",
        "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...",
    ]


def main_stub() -> str:
    """`leafax/__init__.pyi`."""
    imports = [
        f"from {'.' * node.level}{node.module or ''} import {name.name} as {name.asname}"
        for node in ast.parse((FACADE / "__init__.py").read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module != "_api.functions"
        for name in node.names
        if name.name not in ("Tensor", "__version__")
        and not (name.name != name.asname and (name.asname or "_").startswith("_"))
    ]
    later = ("functional", *leafax._core.missing_names.LATER)
    imports += [f"from . import {name} as {name}" for name in later]
    imports += [
        f"from .{home} import {name} as {name}"
        for name, home in leafax._core.missing_names.LATER_NAMES.items()
    ]
    from leafax._api import functions
    from leafax._ops.creation import factories as _creation
    from leafax._ops.creation import from_data

    made = {line.split(" import ")[1].split(" as ")[0] for line in imports}
    factories = sorted(
        n for n in made
        if isinstance(getattr(leafax, n), types.FunctionType)
        and getattr(leafax, n) in (getattr(m, n, None) for m in (_creation, from_data))
    )  # fmt: skip
    kept = [i for i in imports if i.split(" import ")[1].split(" as ")[0] not in factories]
    names = {n for n in functions.__all__ if n not in made} | set(factories)
    return (
        _HEADER + "import builtins\nfrom collections.abc import Iterator as Iterator\n" + _IMPORTS
        + "\n".join(kept) + "\n"
        + "from ._core.dtypes import Size as _Size\nfrom ._core.dtypes import device as _device\n"
        + "from ._core.dtypes import dtype as _dtype\n\n"
        + _ALIASES + "_Ints = _int | Sequence[_int]\n__version__: _str\n\n"
        + "class Tensor:\n" + "\n".join(_method_lines() + _operator_lines()) + "\n\n"
        + "\n".join(function_lines(names, leafax, "")) + "\n"
    )  # fmt: skip


def module_stub(home: Any, prefix: str, dots: str) -> str:
    """The stub of a module of functions."""
    names = [n for n in dir(home) if not n.startswith("_") and n != "annotations"]
    return (
        _HEADER + "import builtins\n" + _IMPORTS
        + f"from {dots} import Tensor as Tensor\nfrom {dots} import return_types as return_types\n"
        + f"from {dots}_core.dtypes import dtype as _dtype\n\n"
        + _ALIASES + "_Ints = _int | Sequence[_int]\n\n"
        + "\n".join(function_lines(names, home, prefix)) + "\n"
    )  # fmt: skip


def results_stub() -> str:
    """`leafax/return_types.pyi`."""
    lines = [_HEADER + "from typing import NamedTuple\n\nfrom . import Tensor\n"]
    for name in leafax.return_types.__all__:
        fields = getattr(leafax.return_types, name)._fields
        lines.append(f"class {name}(NamedTuple):")
        lines += [f"    {field}: Tensor" for field in fields]
        lines.append("")
    return "\n".join(lines)


STUBS: dict[str, Callable[[], str]] = {
    "__init__.pyi": main_stub,
    "return_types.pyi": results_stub,
    "linalg.pyi": lambda: module_stub(leafax.linalg, "linalg.", "."),
    "fft.pyi": lambda: module_stub(leafax.fft, "fft.", "."),
    "special.pyi": lambda: module_stub(leafax.special, "special.", "."),
    "nn/functional.pyi": lambda: module_stub(leafax.nn.functional, "nn.functional.", ".."),
}

if __name__ == "__main__":
    for path, stub in STUBS.items():
        (FACADE / path).write_text(stub())
