"""Python code of graphs whose functions take or return trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.tree.trees import TreeSpec, tree_leaves, tree_unflatten
from ..utils import _pytree as pytree
from . import _pytree as fx_pytree
from ._codegen import CodeGen


class PyTreeInfo(NamedTuple):
    """The structures of a function's arguments and result, which its graph has flat."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class PyTreeCodeGen(CodeGen):
    """Writes the function of a graph whose arguments or result are trees."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return [x for a in inputs for x in tree_leaves(a)]

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return out
        flat = out if isinstance(out, (list, tuple)) else [out]
        return tree_unflatten(flat, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = self.pytree_info.orig_args
        if not names or names[0] != "self":
            free_vars.insert(0, "self")
        names = ["self", *[n for n in names if n != "self"]]
        head = super().gen_fn_def(names[:], maybe_return_annotation)
        bound = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        if not bound:
            return head
        flat = f"fx_pytree.tree_flatten_spec([{', '.join(names[1:])}], self._in_spec)"
        return f"{head}\n    {', '.join(bound)}, = {flat}"

    def generate_output(
        self, output_args: Any, *, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        shown = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {shown}"
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [
            ("fx_pytree", fx_pytree),
            ("pytree", pytree),
        ]
