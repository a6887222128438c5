"""PyTorch's `torch.fx.graph_module`: a module that runs a graph."""

from __future__ import annotations

import copy
import itertools
import sys
from typing import Any

from ..nn.modules.module import Module
from ._attributes import _assign_attr as _assign_attr
from ._attributes import _copy_attr as _copy_attr
from ._attributes import _del_attr as _del_attr
from ._attributes import _get_attr as _get_attr
from ._attributes import _has_attr as _has_attr
from ._codegen import TORCH
from ._generated import _exec_with_source as _exec_with_source
from ._generated import _forward_from_src as _forward_from_src
from ._generated import _WrappedCall as _WrappedCall
from ._names import CUSTOM_BUILTINS, public_name
from .graph import Graph, PythonCode, _PyTreeCodeGen

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module that has another's attributes, so that its code may be traced."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module that runs a graph, whose parameters and submodules it has.

    Args:
      root: the module that has what the graph names, or a dict of it by path.
      graph: the graph.
      class_name: the name of the module's class.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, for its `forward`.
        base = next(c for c in cls.__mro__ if c.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        wanted = [n for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                for named in (root.named_children, root.named_buffers, root.named_parameters):
                    for name, _ in named():
                        _copy_attr(root, self, name)
            for node in wanted:
                _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in wanted:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            for target in sorted((n.target for n in wanted), key=lambda t: str(t).count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        local = tracer is None or "<locals>" in tracer.__qualname__
        self._tracer_cls = None if local else tracer
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        if hasattr(root, "meta") and isinstance(root.meta, dict):
            self.meta.update(root.meta)
        self._replace_hooks: list[Any] = []
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._deepcopy_hooks: list[Any] = []

    @property
    def graph(self) -> Graph:
        """Return the graph; after a change of it call `recompile()`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """Return the Python code of the graph."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make `forward` anew from the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        made = self._graph.python_code(root_module="self")
        self._code = made.src
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, made.globals)
        call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, call)

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; tell whether all on the way are modules."""
        *prefix, name = target.split(".")
        at: Any = self
        for item in prefix:
            inner = getattr(at, item, None)
            if inner is None:
                inner = Module()
                setattr(at, item, inner)
            if not isinstance(inner, Module):
                return False
            at = inner
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path out; tell whether there was one."""
        *prefix, name = target.split(".")
        at: Any = self
        for item in prefix:
            at = getattr(at, item, None)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name in [n for n, _ in self.named_modules() if n not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made: GraphModule = type(self).__new__(type(self))
        memo[id(self)] = made
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        GraphModule.__init__(made, body, body.__dict__["_graph"])
        for name in (
            "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
        ):  # fmt: skip
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.deepcopy(self.meta, memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = self.meta
        return made

    def __reduce__(self) -> Any:
        """Write the code down, which is traced anew when it is read."""
        state = self.__dict__.copy()
        made = self.recompile()
        del state["_graph"]
        return reduce_graph_module, (state, _import_block(made.globals))

    def print_readable(self, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
        """Return the code as a class with those of its submodules, and print it."""
        text = _readable(self, self._get_name())
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        shown = super().__str__()
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([shown, self._code, hint])


def _readable(module: GraphModule, name: str) -> str:
    code = module.graph.python_code("self", verbose=True).src.lstrip("\n")
    text = _indented(f"class {name}(torch.nn.Module):\n{code}")
    inner = [
        _readable(m, child) for child, m in module.named_children() if isinstance(m, GraphModule)
    ]
    return text + _indented("\n".join(["", *inner]))


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *[" " * 4 + line if line.strip() else "" for line in rest]])


def _import_block(globals_: dict[str, Any]) -> str:
    lines = set()
    for name, found in globals_.items():
        if name in CUSTOM_BUILTINS:
            lines.add(CUSTOM_BUILTINS[name][0] if name not in ("torch", "device") else "")
        elif (public := public_name(found)) is None:
            lines.add(f"from {found.__module__} import {found.__qualname__} as {name}")
        else:
            lines.add(f"{name} = {public}")
    return "\n".join(sorted(filter(None, lines)))


def reduce_graph_module(body: dict[str, Any], import_block: str) -> GraphModule:
    """Make a module of what one was written down as."""
    src = body.get("_code") or body["code"]
    names: dict[str, Any] = {"torch": TORCH, "device": TORCH.device}
    _exec_with_source(import_block + "\n" + src, names)
    body = dict(body)
    tracer_cls = body.pop("_tracer_cls", None) or sys.modules["leafax.fx._symbolic_trace"].Tracer
    kind: Any = type("_OfCode", (_CodeOnlyModule,), {"forward": names["forward"]})
    root = kind(body)

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(root)
    graph._tracer_cls = tracer_cls
    made = GraphModule(root, graph, body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made
