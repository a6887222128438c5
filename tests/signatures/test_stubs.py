"""The checked-in type stubs are those that the op table makes, and say what is there."""

from __future__ import annotations

import ast

import pytest
from make_stubs import FACADE, STUBS

import leafax


@pytest.mark.parametrize("path", STUBS)
def test_stub_is_current(path):
    assert (FACADE / path).read_text() == STUBS[path](), "run `python tests/make_stubs.py`"


def test_everything_public_is_in_the_stub():
    tree = ast.parse((FACADE / "__init__.pyi").read_text())
    named = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            named.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name for alias in node.names}
    public = {n for n in dir(leafax) if not n.startswith("_")}
    assert public - named <= {"adapters", "functional", "annotations"}
    cls = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    methods = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)}
    methods |= {n.target.id for n in cls.body if isinstance(n, ast.AnnAssign)}
    assert {n for n in dir(leafax.Tensor) if not n.startswith("_")} == {
        n for n in methods if not n.startswith("_")
    }


def test_signatures_are_those_of_the_table():
    text = (FACADE / "__init__.pyi").read_text()
    for line in (
        "    def sum(self, dim: _Ints | None = ..., keepdim: _bool = ..., *, "
        "dtype: Any = ...) -> Tensor: ...",
        "def topk(input: Tensor, k: _int, dim: _int = ..., largest: _bool = ..., sorted: _bool = "
        "..., *, out: Any = ...) -> return_types.topk: ...",
        "    def reshape(self, *size: Any) -> Tensor: ...",
        "    def relu_(self) -> Tensor: ...",
    ):
        assert line in text
