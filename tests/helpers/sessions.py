"""Run a session of statements under both libraries, and compare what each of them shows."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import textwrap
import warnings
from typing import Any

import numpy as np
import torch

import leafax

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)")
_NOISE = re.compile(r"0x[0-9a-f]+|\s*\(Triggered internally at [^)]*\)")
_START = {
    "np": np, "math": importlib.import_module("math"), "copy": importlib.import_module("copy"),
}  # fmt: skip


class _Pretend:
    """`import torch` inside of a session gives the library that it is run with."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def __call__(self, name: str, globals: Any, locals: Any, names: Any, level: int) -> Any:
        if not name.startswith("torch"):
            return __import__(name, globals, locals, names, level)
        made = importlib.import_module(self.lib.__name__ + name[len("torch") :])
        return made if names else self.lib

    def plain(self, tree: ast.stmt) -> ast.stmt:
        """`import torch.a.b as c` as a statement that imports names."""
        if isinstance(tree, ast.Import) and tree.names[0].asname:
            module, _, name = tree.names[0].name.rpartition(".")
            made = ast.ImportFrom(module, [ast.alias(name, tree.names[0].asname)], 0)
            return ast.copy_location(made, tree)
        return tree


def _shown(source: str, lib: Any) -> list[str]:
    pretend = _Pretend(lib)
    names = {**_START, "torch": lib, "__name__": "session"}
    names["__builtins__"] = {**vars(importlib.import_module("builtins")), "__import__": pretend}
    shown = []
    for tree in ast.parse(textwrap.dedent(source)).body:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if isinstance(tree, ast.Expr):
                    print(repr(eval(compile(ast.Expression(tree.value), "session", "eval"), names)))
                else:
                    exec(compile(ast.Module([pretend.plain(tree)], []), "session", "exec"), names)
            except Exception as e:
                print(f"{type(e).__name__}: {e}")
        text = [out.getvalue().split("\nException raised from")[0].strip()]
        text += [
            f"{w.category.__name__}: {w.message}" for w in caught if "jit" not in str(w.message)
        ]
        shown.append(
            f"{ast.unparse(tree)}\n" + _NOISE.sub("", "\n".join(text)).replace("leafax", "torch")
        )
    return shown


def _rounded(text: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub(lambda m: f"{float(m[0]):.3g}", text))


def compare(source: str) -> None:
    """Assert that each statement of a session shows the same under both libraries."""
    always = torch.is_warn_always_enabled(), leafax.is_warn_always_enabled()
    torch.set_warn_always(True), leafax.set_warn_always(True)
    try:
        theirs, ours = _shown(source, torch), _shown(source, leafax)
    finally:
        torch.set_warn_always(always[0]), leafax.set_warn_always(always[1])
    for a, b in zip(ours, theirs, strict=True):
        assert _rounded(a) == _rounded(b)
