"""Symbolic tracing: a module is called with proxies, which record what it does."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .._core.handle import Handle
from .._core.overrides.state import activate
from .._core.tree.trees import TreeSpec
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._inputs import TracerOfInputs, annotations_of
from ._inputs import _assert_is_none as _assert_is_none
from ._patcher import Patcher, find_proxy, wrapped_function
from ._wrapping import ProxyableClassMeta as ProxyableClassMeta
from ._wrapping import _proxyable_classes as _proxyable_classes
from ._wrapping import _wrapped_fns_to_patch as _wrapped_fns_to_patch
from ._wrapping import wrap as wrap
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, Scope

_find_proxy = find_proxy
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Tell whether a graph is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class Tracer(TracerOfInputs):
    """Traces modules and functions to graphs; derived classes say what a leaf is.

    Args:
      autowrap_modules: modules whose functions are nodes of their own when called with proxies.
      autowrap_functions: functions that are.
      param_shapes_constant: parameters know their shapes while tracing.
    """

    _qualname_counter: dict[str, int] = {}

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}
        self.root: Module
        self.tensor_attrs: dict[Any, str] = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name for an attribute that the root does not have."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node: a tensor as the reading of an attribute."""
        path = self._path_of(a)
        if path is not None:
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Parameter):
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", a.__class__, args, {})
        if isinstance(a, (Handle, TreeSpec)):
            if a not in self.tensor_attrs:
                tree = isinstance(a, TreeSpec)
                name = self.get_fresh_qualname(
                    "_tree_spec_constant" if tree else "_tensor_constant"
                )
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", self.tensor_attrs[a], (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Tell whether the call of a module is a node: those of `torch.nn` are."""
        own = m.__module__.startswith(("leafax.nn", "leafax.ao.nn"))
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a submodule.

        Raises:
          NameError: it is none.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = self._path_of(mod)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what the call of a module gives: a proxy of a node, or what it does."""
        path = self.path_of_module(m)
        before, self.scope = self.scope, Scope(path, type(m))
        calls = self.num_calls.get(path, 0)
        key = f"{path}@{calls}" if calls else path
        self.module_stack[key] = path, type(m)
        self.num_calls[path] = calls + 1
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(key, None)
            self.scope = before

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what an attribute of a module is while it is traced: a parameter is a proxy."""
        wanted = Handle if self.proxy_buffer_attributes else Parameter
        path = self._path_of(attr_val) if isinstance(attr_val, wanted) else None
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            made = self.create_proxy("get_attr", path, (), {})
            if self.param_shapes_constant:
                made = ParameterProxy(self, made.node, path, attr_val)
            parameter_proxy_cache[path] = made
        return parameter_proxy_cache[path]

    def _path_of(self, value: Any) -> str | None:
        """Return the path of one of the root's parameters, buffers or modules."""
        named: Iterable[tuple[str, Any]] = ()
        if isinstance(value, Parameter):
            named = self.root.named_parameters()
        elif isinstance(value, Handle):
            named = self.root.named_buffers()
        elif isinstance(value, Module):
            named = self.root.named_modules()
        return next((name for name, x in named if x is value), None)

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Return the graph of a module or function.

        Args:
          concrete_args: arguments by name that are no inputs, but these values.
        """
        activate()
        is_module = isinstance(root, Module)
        if is_module:
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            value: f"{path}.{name}" if path else name
            for path, m in self.root.named_modules()
            for name, value in vars(m).items()
            if isinstance(value, (Handle, TreeSpec))
        }
        where = fn.__globals__  # before it is patched
        with _tracing():
            fn, args = self.create_args_for_root(fn, is_module, concrete_args)
            with Patcher() as patcher:
                self._patch(patcher, where)
                returned = annotations_of(inspect.unwrap(fn)).get("return")
                out = self.create_arg(fn(*args))
                self.create_node("output", "output", (out,), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: Patcher, where: dict[str, Any]) -> None:
        """Have calls and parameters of modules, and listed functions, come here."""
        read, call = Module.__getattr__, Module.__call__
        cache: dict[str, Proxy] = {}

        @functools.wraps(read)
        def read_wrapped(mod: Any, attr: str) -> Any:
            return self.getattr(attr, read(mod, attr), cache)

        @functools.wraps(call)
        def call_wrapped(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            patcher.wrap_listed(names, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", read_wrapped, deduplicate=False)
        patcher.patch_method(Module, "__call__", call_wrapped, deduplicate=False)
        for (_, name), names in list(_wrapped_fns_to_patch.items()):
            found: Any = names.get(name, getattr(builtins, name, None))
            if found is not None:
                patcher.patch(names, name, wrapped_function(found))
        for cls, name in _wrapped_methods_to_patch:
            patcher.patch_method(cls, name, _wrapped_method(cls, name))
        patcher.wrap_listed(where, self._autowrap_function_ids)
        for module in self._autowrap_search:
            patcher.wrap_listed(vars(module), self._autowrap_function_ids)

    def __deepcopy__(self, memo: Any) -> Tracer:
        made = Tracer.__new__(Tracer)
        for name, value in vars(self).items():
            shared = name == "_autowrap_search"  # modules, which cannot be copied
            made.__dict__[name] = copy.copy(value) if shared else copy.deepcopy(value, memo)
        return made


@contextmanager
def _tracing() -> Iterator[None]:
    global _is_fx_tracing_flag
    before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
    try:
        yield
    finally:
        _is_fx_tracing_flag = before


def _wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    old = getattr(cls, name)

    @functools.wraps(old)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return old(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return call


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or function and return its graph as a module.

    Args:
      root: the module or function.
      concrete_args: arguments by name that are no inputs, but these values; in a tree `PH` stands
        for what is an input.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
