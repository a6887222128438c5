"""PyTorch's `torch.fx.interpreter`: a graph run node by node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from . import traceback as fx_traceback
from ._codegen import dead_values_by_user
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph's nodes one after the other; derived classes change what one does.

    Args:
      module: the module whose graph it is.
      garbage_collect_values: forget values after their last use.
      graph: another graph, whose targets the module has.
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Any = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            self.user_to_last_uses = dead_values_by_user(self.graph.nodes)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:  # fmt: skip
        """Run the graph.

        Args:
          initial_env: values of nodes that need not run.
          enable_io_processing: take arguments and results as the graph's code does.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback:
                    where = f"While executing {node.format_node()}"
                    text = f"{e.args[0]}\n\n{where}" if e.args else where
                    e.args = (text, *e.args[1:])
                    if isinstance(e, KeyError):
                        raise RuntimeError(*e.args) from e
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph on a list of arguments, which is emptied."""
        given = list(args_list)
        args_list.clear()
        return self.run(*given, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """Run one node."""
        with fx_traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the next argument, or all that are left."""
        if target.startswith("*"):
            return list(self.args_iter)
        for given in self.args_iter:
            return given
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {target}, but one was not passed in!"
        )

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a method."""
        obj, *rest = args
        return getattr(obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return what the module has at a path.

        Raises:
          RuntimeError: it has nothing there.
        """
        at: Any = self.module
        atoms = target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(at, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            at = getattr(at, atom)
        return at

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return a node's arguments, with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return arguments with values for nodes."""

        def load(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, load)


class Transformer(Interpreter):
    """Runs a graph on proxies, which makes another; derived classes change what a node becomes.

    Args:
      module: the module whose graph it is.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        root, graph = module, self.new_graph

        class TransformerTracer(Tracer):
            def __init__(self) -> None:
                super().__init__()
                self.graph, self.root = graph, root
                self.tensor_attrs = {}

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer()

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.call_module(self.fetch_attr(target), _unreached, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph and return the module of the new one."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            out = map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
            self.new_graph.output(out)
        return GraphModule(self.module, self.new_graph)


def _unreached(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a module is a leaf here")
