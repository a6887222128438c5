"""PyTorch's `torch.fx.proxy`: values that record what is done with them."""

from __future__ import annotations

import collections
import copy
import dis
import enum
import inspect
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn

from .._core.dtypes import device, dtype
from .._core.memory_format import layout, memory_format
from .._core.tree.trees import tree_leaves
from . import traceback as fx_traceback
from ._names import public_name
from ._operators import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Node, base_types, map_arg

_PLAIN = (*base_types, dtype, device, layout, memory_format, enum.Enum, type(None), type(...))


@dataclass
class Scope:
    """The module that is being traced: its path and its class."""

    module_path: str
    module_type: Any


class TraceError(ValueError):
    """Something was done with a proxy that cannot be recorded."""


class TracerBase:
    """Makes nodes of calls; `Tracer` makes those of modules."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self) -> None:
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, Any] = collections.OrderedDict()
        self.node_name_to_scope: dict[str, Any] = {}

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node into the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        current = fx_traceback.get_current_meta()
        if fx_traceback.has_preserved_node_meta():
            node.meta.update(copy.copy(current))
        elif "custom" in current:
            node.meta["custom"] = current["custom"]
        if self.module_stack:
            node.meta.setdefault("nn_module_stack", copy.copy(self.module_stack))
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the value that stands for a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Insert a node and return the value that stands for it."""
        node = self.create_node(
            kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr
        )
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node.

        Raises:
          NotImplementedError: no code could be written of it.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        if isinstance(a, _PLAIN) or hasattr(a, "_opname") and callable(a):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", a.__class__, (), kwargs)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}"
            )

        return map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """Raise: nobody knows the value of a proxy; derived classes may."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raise: nobody knows the length of a proxy; derived classes may."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Record `obj.keys()`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Records what is done with a proxy of a node at the place of insertion of its graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


class Proxy:
    """A value that records functions, methods and operators that it meets as nodes of a graph.

    Args:
      node: the node whose result it stands for.
      tracer: makes the nodes; else they are inserted into the node's graph.
    """

    node: Node

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)  # a node once it is used as a value

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return Proxy(copy.deepcopy(self.node, memo), copy.copy(self.tracer))

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller: Any = None if frame is None else frame.f_back
        instructions = list(dis.get_instructions(caller.f_code))
        at = instructions[bisect_left(instructions, caller.f_lasti, key=lambda i: i.offset)]
        if at.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(at.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Record `keys()`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        found = [a for a in tree_leaves([args, kwargs]) if isinstance(a, cls)]
        tracers = list(dict.fromkeys(a.tracer for a in found))
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {tracers} while trying to trace operations "
                f"{orig_method}"
            )
        tracer = tracers[0]
        name = orig_method.__name__
        if name == "__get__" or (public_name(orig_method) or "").startswith("torch.Tensor."):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name)
        )


class Attribute(Proxy):
    """An attribute of a proxy: read if it is used as a value, called if it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Return the node that reads it, made now."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape may be asked for, as `param_shapes_constant` has it."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    @property
    def ndim(self) -> int:
        return self.dim()

    def size(self) -> Any:
        """Return the parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of the parameter's dimensions."""
        return int(self.param.dim())

    def numel(self) -> int:
        """Return the number of the parameter's elements."""
        return int(self.param.numel())

    nelement = numel


def _operator(name: str) -> Callable[..., Proxy]:
    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)  # type: ignore[no-any-return]

    method.__name__ = name
    return method


def _reflected(name: str) -> Callable[..., Proxy]:
    def method(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", getattr(operator, name), (rhs, self), {})

    method.__name__ = method.__qualname__ = f"__r{name.strip('_')}__"
    return method


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
