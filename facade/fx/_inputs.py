"""Inputs of graphs: the parameters of the function that is traced."""

from __future__ import annotations

import inspect
import warnings
from types import CodeType, FunctionType
from typing import Any

from .._core.tree.trees import tree_flatten, tree_map, tree_unflatten
from .._ops.composites.asserts import _assert
from ..nn.modules.module import Module
from ._placeholders import PH, PHBase, transfer_attributes
from ._tree_codegen import PyTreeCodeGen, PyTreeInfo
from ._wrapping import wrap
from .node import base_types
from .proxy import TracerBase

_VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class TracerOfInputs(TracerBase):
    """Makes the inputs of what it traces."""

    root: Module

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Make the inputs of a function; return it, taking them, and them."""
        inner: Any = inspect.unwrap(root_fn)
        code = inner.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        signature = inspect.signature(inner)
        own = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete "
                    "arguments"
                )
            concrete_args = dict(zip(own, concrete_args, strict=True))
        for name in own:
            args.append(self._input(name, concrete_args, signature, inner))
        if code.co_kwonlyargcount or code.co_flags & _VARIABLE:
            at = total
            for flag, mark in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    args.append(self._input(mark + names[at], concrete_args, signature, inner))
                    at += 1
            root_fn = by_place(root_fn, len(args))
        flat, spec = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        self.graph._codegen = PyTreeCodeGen(PyTreeInfo(names[:total], spec, None))

        def flatten_fn(*given: Any) -> Any:
            out, out_spec = tree_flatten(root_fn(*tree_unflatten(list(given), spec)))
            codegen = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return out

        return flatten_fn, flat

    def _input(self, name: str, concrete: Any, signature: Any, fn: Any) -> Any:
        default: tuple[Any, ...] = ()
        if name[0] != "*":
            p = signature.parameters[name]
            default = () if p.default is p.empty else (p.default,)
        if concrete is None or name not in concrete:
            kind = annotations_of(fn).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def replace(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                if x is not PH:
                    transfer_attributes(fr=x, to=out.node)
                return out
            told = f"{name} has been specialized to have value "
            if isinstance(x, bool) or type(x) in base_types:
                text = f"{told}{x} but got another value"
                self.create_proxy("call_function", _assert, (out == x, text), {})
            elif x is None:
                text = f"{told}None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, text), {})
            else:
                warnings.warn(
                    "Was not able to add assertion to guarantee correct input "
                    f"{name} to specialized function. It is up to the user to make sure that your "
                    "inputs match the inputs you specialized the function with.",
                    stacklevel=2,
                )
            return x

        return tree_map(replace, concrete[name])


def annotations_of(fn: Any) -> dict[str, Any]:
    """Return a function's annotations; the layers' own have none in PyTorch."""
    return {} if (fn.__module__ or "").startswith("leafax.") else inspect.get_annotations(fn)


def by_place(fn: Any, count: int) -> Any:
    """Return a function that takes all by place, `*args` and `**kwargs` each as one argument."""
    old: CodeType = fn.__code__
    code = old.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=old.co_flags & ~_VARIABLE,
    )
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__annotations__ = fn.__annotations__
    return made


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


_assert_is_none.__module__ = "leafax.fx._symbolic_trace"  # which code of graphs names
