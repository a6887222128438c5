"""PyTorch's `torch.fx.graph`: nodes in the order in which they run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ._codegen import CodeGen as CodeGen
from ._codegen import OnGenerateCode, PythonCode
from ._lint import check as _check
from ._names import Namespace as _Namespace
from ._names import is_magic, snake_case
from ._node_list import InsertPoint as _InsertPoint
from ._node_list import NodeList as _node_list
from ._operators import inplace_methods as inplace_methods
from ._operators import magic_methods as magic_methods
from ._operators import reflectable_magic_methods as reflectable_magic_methods
from ._tree_codegen import PyTreeCodeGen as _PyTreeCodeGen
from ._tree_codegen import PyTreeInfo as _PyTreeInfo
from .node import _LEGAL_OPS, Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode", "_Namespace", "_PyTreeCodeGen", "_PyTreeInfo"]


class Graph:
    """Calls in order: what `symbolic_trace` records and a `GraphModule` runs.

    Args:
      owning_module: the `GraphModule` whose graph it is.
      tracer_cls: the class of the tracer that made it.
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module, self._tracer_cls = owning_module, tracer_cls
        self._tracer_extras = tracer_extras
        self._used_names: dict[str, int] = {}
        self._codegen: Any = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """Return the module whose graph it is, None if there is none."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> Any:
        """Return the nodes in order; some may be erased or added while they are walked."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the node of the output."""
        found = next(iter(reversed(self.nodes)))
        if found.op != "output":
            raise AssertionError(f"Expected output node, got {found.op}")
        return found  # type: ignore[no-any-return]

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of one kind, and of one target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copy the nodes of another graph; return what its output was made of.

        Args:
          val_map: the copies of its nodes, which those that are made join.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                out = map_arg(node.args[0], lambda n: val_map[n])
                return (out, node) if return_output_node else out
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        output = made.graph_copy(self, copies, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if output is not None:
            node = made.output(output[0], type_expr=getattr(output[1], "type", None))
            node.meta = copy.copy(output[1].meta)
        memo[id(self)] = made
        return made

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node at the place of insertion, which is the end or that of a block."""
        if op not in _LEGAL_OPS:
            raise AssertionError(f"op '{op}' is not a legal op")
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        if self.owning_module is not None:
            for hook in getattr(self.owning_module, "_create_node_hooks", ()):
                hook(node)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._len += 1
        return node

    def process_inputs(self, *args: Any) -> Any:
        """Return a call's arguments as the graph's inputs."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the graph's output as that of the function."""
        return self._codegen.process_outputs(out)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out.

        Raises:
          RuntimeError: others take its result.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Return a block in which nodes are inserted before one, else at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Return a block in which nodes are inserted after one, else at the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        following = n._next
        return _InsertPoint(self, following.prepend)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Insert an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert the reading of a parameter, buffer or other attribute by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Insert the call of a module by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Insert the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None,
        type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Insert the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Insert a copy of a node of any graph.

        Args:
          arg_transform: gives this graph's node for each that the copied one takes.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Insert the output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            name = target.__name__
        else:
            name = target[2:-2] if is_magic(target) else target
        return snake_case(name)

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """Write the graph as a Python function.

        Args:
          root_module: the name of the module in it, "self".
        """
        namespace = _Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]

        def named(node: Node) -> str:
            return namespace.create_name(node.name, node)

        for node in self.nodes:
            node._repr_fn = named
        try:
            found: PythonCode = self._codegen._gen_python_code(
                self.nodes, root_module, namespace, **options
            )
            return found
        finally:
            for node, shown in before:
                node._repr_fn = shown

    def __str__(self) -> str:
        inputs: list[str] = []
        lines = [node.format_node(inputs) for node in self.nodes]
        head = f"graph({', '.join(inputs)}):"
        return "\n    ".join([head, *filter(None, lines)])

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package tabulate."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped]
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on "
                "this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Check the graph: each node takes earlier ones, names differ, targets are there.

        Raises:
          RuntimeError: it is not so.
        """
        _check(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out nodes whose result nobody takes; tell whether there were any.

        Args:
          is_impure_node: tells of a node whether it stays; else those do that write.
        """
        self.lint()
        stays = is_impure_node or (lambda node: node.is_impure())
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                changed = True
        return changed

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have code written by another object."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> OnGenerateCode:
        """Have the lines of the code changed when it is written.

        Args:
          make_transformer: gets the function that changed them before, or None, and returns one.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return OnGenerateCode(self, before)
