"""Python code of graphs."""

from __future__ import annotations

import enum
import sys
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._core.dtypes import device
from .._core.handle import Handle
from ._names import Namespace, public_name, qualified_name, type_repr
from ._operators import inplace_methods, magic_methods
from .node import Node

if TYPE_CHECKING:
    from .graph import Graph


@dataclass
class PythonCode:
    """The source of a graph's function, and the objects that it names."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _Torch:
    """The name `torch` in code of graphs."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules["leafax"], name)

    @property
    def functional(self) -> _Torch:
        """Return itself: what PyTorch has in `torch.functional` stands at the top here."""
        return self


TORCH = _Torch()


def format_target(base: str, target: str) -> str:
    """Return code that reads an attribute of an attribute of a value."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


@dataclass
class _Code:
    """A function that is being written."""

    namespace: Namespace
    root: str
    globals: dict[str, Any] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    wrapped: dict[str, None] = field(default_factory=dict)
    returns: str = ""

    def add_global(self, hint: str, obj: Any) -> str:
        """Return the name of an object in the code."""
        if obj is not device and (public := public_name(obj)) is not None:
            return hint if hint.startswith("torch.") else public
        name = hint.replace(".", "_")
        if name in self.globals and self.globals[name] is obj:
            return name
        name = self.namespace.create_name(name, obj)
        self.globals[name] = obj
        return name

    def type_name(self, kind: Any) -> str:
        """Return the name of an annotation."""
        if kind == ():
            return "()"
        text = type_repr(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.type_name, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if origin is not None:
            name = self.add_global(type_repr(origin), origin)
            args = ",".join(map(self.type_name, typing.get_args(kind)))
            return f"{name}[{args}]" if args else name
        return self.add_global(text, kind)

    def value(self, arg: Any) -> str:
        """Return code of an argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if hasattr(arg, "_opname") and callable(arg):
            return self.add_global(qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Handle):
            shown: Any = arg
            dtype = str(shown.dtype).rpartition(".")[2]
            return f"torch.Tensor(size={list(shown.size())}, dtype={dtype})"
        if isinstance(arg, tuple):
            inner = ", ".join(map(self.value, arg))
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            parts = map(self.value, (arg.start, arg.stop, arg.step))
            return f"slice({', '.join(parts)})"
        if isinstance(arg, type) and arg.__module__ != "builtins":
            return self.add_global(type_repr(arg), arg)
        return repr(arg)

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """Return code of a call's arguments."""
        named = [f"{name} = {self.value(x)}" for name, x in kwargs.items()]
        return ", ".join([*map(self.value, args), *named])


class CodeGen:
    """Writes the function of a graph; derived classes change its head and its end."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the line `def forward(self, x):`."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """Return the line that returns the result."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return a call's arguments as the graph's inputs."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the graph's output as that of the function."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return objects that the code names besides, with their names."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: Namespace, **options: Any
    ) -> PythonCode:
        code = _Code(namespace, root_module, {"torch": TORCH, "device": device})
        for name in ("inf", "nan"):
            code.globals[name] = float(name)
        code.globals["NoneType"] = type(None)
        verbose, told = options.get("verbose", False), False
        dead = dead_values_by_user(nodes)
        for node in nodes:
            if verbose and not told and node.op not in ("placeholder", "output"):
                code.body.append("\n# No stacktrace found for following nodes\n")
                told = True
            line = self._line(node, code)
            if line is None:
                continue
            if node.op == "output" or node.op == "placeholder":
                code.body.append(f"{line}\n")
                continue
            gone = dead.get(node, [])
            if not node.users:
                gone = [*gone, node]
            end = f";  {' = '.join([*map(repr, gone), 'None'])}" if gone else ""
            code.body.append(f"{line}{end}\n")
        body = code.body or ["pass\n"]
        wraps = ""
        if code.wrapped:
            name = code.add_global("wrap", sys.modules["leafax.fx._symbolic_trace"].wrap)
            wraps = "\n".join(f'{name}("{wrapped}")' for wrapped in code.wrapped)
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        for name, found in self.additional_globals():
            code.globals[name] = found
        head = self.gen_fn_def(code.parameters, code.returns)
        text = "".join(body).lstrip("\n")
        lines = "\n".join(f"    {line}" for line in text.split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{lines}", code.globals)

    def _line(self, node: Node, code: _Code) -> str | None:
        """Return the line of a node; None for an input, which is a parameter."""
        kind = "" if node.type is None else f" : {code.type_name(node.type)}"
        to = f"{node!r}{kind} = "
        target: Any = node.target
        if node.op == "placeholder":
            default = f" = {code.value(node.args[0])}" if node.args else ""
            code.parameters.append(f"{target}{kind}{default}")
            raw = target.replace("*", "")
            return None if raw == repr(node) else f"{node!r} = {raw}"
        if node.op == "output":
            if node.type is not None:
                code.returns = f" -> {code.type_name(node.type)}"
            return self.generate_output(node.args[0], repr_fn=code.value)
        if node.op == "get_attr":
            return to + format_target(code.root, target)
        arguments = code.arguments(node.args, node.kwargs)
        if node.op == "call_module":
            return f"{to}{format_target(code.root, target)}({arguments})"
        if node.op == "call_method":
            rest = code.arguments(node.args[1:], node.kwargs)
            return f"{to}{format_target(code.value(node.args[0]), target)}({rest})"
        if getattr(target, "__module__", "") == "_operator":
            values = [code.value(a) for a in node.args]
            if target.__name__ in magic_methods:
                return to + magic_methods[target.__name__].format(*values)
            if target.__name__ in inplace_methods:
                written = inplace_methods[target.__name__].format(*values)
                return f"{written};  {to}{values[0]}"
        name = code.add_global(qualified_name(target), target)
        two = len(node.args) == 2 and isinstance(node.args[1], str)
        if name == "getattr" and two and node.args[1].isidentifier():
            return to + format_target(code.value(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped", False):
            code.wrapped.setdefault(name)
        return f"{to}{name}({arguments})"


def dead_values_by_user(nodes: Any) -> dict[Node, list[Node]]:
    """Return by node the values that it takes and no later one does."""
    last: dict[Node, Node] = {}
    dead: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for node in user._input_nodes:
            if node not in last:
                last[node] = user
                dead.setdefault(user, []).append(node)
    return dead


class OnGenerateCode:
    """A block in which other code is written; made by `Graph.on_generate_code`."""

    def __init__(self, graph: Graph, before: Any) -> None:
        self.graph, self.before = graph, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._codegen._body_transformer = self.before
