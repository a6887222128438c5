"""Operators that programs define: their implementations by device, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.grad_modes import is_grad_enabled, no_grad
from .._core.handle import Handle
from .._core.tree.trees import tree_leaves
from .._core.trie import local
from .._ops.autocast.scope import autocast, is_autocast_enabled
from .gradients import make_function
from .schema import FunctionSchema, bind

#: The key of implementations for all devices, whose ops are recorded for autograd.
IMPLICIT = "CompositeImplicitAutograd"
EXPLICIT = "CompositeExplicitAutograd"  # and of those whose ops are not
_DEVICES = {"cpu": "CPU", "cuda": "CUDA", "tpu": "XLA", "xla": "XLA", "meta": "Meta"}
OPERATORS: dict[str, Operator] = {}  # by "namespace::name", with ".overload" where there is one


def key_of_device(device: str) -> str:
    """Return the dispatch key of a device's type: "CPU"."""
    return _DEVICES.get(device, device.upper())


class Operator:
    """An op of a program's own.

    Attributes:
      kernels: its implementations by dispatch key.
      opaque: it is a `custom_op`: the ops in it are not recorded for autograd.
      backward, setup_context: of its gradient, as `register_autograd` was given them.
      disabled: keys whose implementation is not called for a while.
      casts: dtypes that autocast gives its arguments, by device.
      check_result: looks at what an implementation returned.
    """

    def __init__(self, schema: FunctionSchema, opaque: bool = False) -> None:
        self.schema, self.opaque = schema, opaque
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.disabled: frozenset[str] = frozenset()
        self.casts: dict[str, Any] = {}
        self.check_result: Callable[[Any, Any, Any], None] | None = None
        self.function = make_function(self)

    @property
    def shown(self) -> str:
        """Return the name as PyTorch prints it: "mylib.foo.default"."""
        overload = self.schema.overload_name or "default"
        return f"{self.schema.name.replace('::', '.')}.{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first, named = bind(self.schema, args, kwargs)
        tensors = [x for x in tree_leaves([*first, *named.values()]) if isinstance(x, Handle)]
        for device, dtype in self.casts.items():
            if is_autocast_enabled(device):
                first = tuple([_cast(x, dtype) for x in first])
                with autocast(device, enabled=False):
                    return self._differentiated(first, named, tensors)
        return self._differentiated(first, named, tensors)

    def _differentiated(self, first: Any, named: Any, tensors: list[Any]) -> Any:
        formula = self.opaque or self.backward is not None
        wanted = is_grad_enabled() and any(t._v.requires_grad for t in tensors)
        if formula and (wanted or self.vmap is not None and local.vmap is not None):
            return self.function.apply_op(first, named)
        if not formula:
            return self.run(first, named)
        with no_grad():
            return self.run(first, named)

    def run(self, first: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the implementation."""
        made = self._kernel(first, named)(*first, **named)
        if self.check_result is not None:
            self.check_result(made, first, named)
        return made

    def _kernel(self, first: Any, named: Any) -> Callable[..., Any]:
        given = tree_leaves([*first, *named.values()])
        devices = {str(x.device.type) for x in given if isinstance(x, Handle)}
        for key in (*map(key_of_device, sorted(devices)), "CUDA" if "cuda" in devices else ""):
            if key in self.kernels and key not in self.disabled:
                return self.kernels[key]
        for key in ("BackendSelect", EXPLICIT, IMPLICIT):
            if key in self.kernels:
                return self.kernels[key]
        backend = key_of_device(next(iter(sorted(devices)), "cpu"))
        raise NotImplementedError(
            f"Could not run '{self.schema.name}' with arguments from the '{backend}' backend. This "
            "could be because the operator doesn't exist for this backend, or was omitted during "
            "the selective/custom build process (if using custom build). "
            f"'{self.schema.name}' is only available for these backends: "
            f"[{', '.join(self.kernels)}]."
        )

    def set_gradient(
        self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None, shown: Any
    ) -> None:
        """Take the functions of a gradient.

        Args:
          shown: the op as an error shows it.

        Raises:
          RuntimeError: the op writes to an argument.
        """
        if self.schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {shown} with "
                f"schema {self.schema}. Please create a functional operator and register an "
                "autograd formula for that."
            )
        self.backward, self.setup_context = backward, setup_context


def _cast(x: Any, dtype: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)([_cast(y, dtype) for y in x])
    return x.to(dtype) if isinstance(x, Handle) and x.is_floating_point() else x


def define(schema: FunctionSchema, opaque: bool = False) -> Operator:
    """Make an operator.

    Raises:
      RuntimeError: there is one of that name.
    """
    if schema.whole_name in OPERATORS:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name "
            "multiple times. Each overload's schema should only be registered with a single call "
            "to def()."
        )
    made = OPERATORS[schema.whole_name] = Operator(schema, opaque)
    return made


def overloads(name: str) -> dict[str, Operator]:
    """Return the operators of a name, "namespace::name", by the names of their overloads."""
    return {
        op.schema.overload_name or "default": op
        for op in OPERATORS.values()
        if op.schema.name == name
    }


def find(qualname: str) -> Operator | None:
    """Return an operator by its name, "namespace::name" or "namespace::name.overload"."""
    return OPERATORS.get(qualname.removesuffix(".default"))
