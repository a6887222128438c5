"""`torch.library.Library`: the ops of a namespace, defined by their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._ops.calls.aten_names import OpOverload
from .operators import IMPLICIT, OPERATORS, define, find
from .schema import parse_schema

_KINDS = "DEF", "IMPL", "FRAGMENT"
_namespaces: set[str] = {"aten", "prims", "prim"}


def fallthrough_kernel() -> None:
    """Stand for an implementation that leaves the op to the next."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Ops of one namespace, which `define` and `impl` add to.

    Args:
      ns: the namespace.
      kind: "DEF" for a new one, "FRAGMENT" for more of one, "IMPL" for implementations alone.
      dispatch_key: of the implementations where they name none.

    >>> import leafax as torch
    >>> lib = torch.library.Library("docs", "FRAGMENT")
    >>> lib.define("scaled(Tensor x, float by=2.0) -> Tensor")
    'scaled'
    >>> lib.impl("scaled", lambda x, by=2.0: x * by)
    >>> torch.ops.docs.scaled(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in _KINDS:
            raise ValueError(f"Unsupported kind: {kind}")
        if kind == "DEF" and ns in _namespaces:
            raise RuntimeError(
                "Only a single TORCH_LIBRARY can be used to register the namespace "
                f"{ns}; please put all of your definitions in a single TORCH_LIBRARY block.  If "
                "you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL "
                "(which can be duplicated).  If you really intended to define operators for a "
                "single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                "explicitly indicate this."
            )
        if kind == "DEF":
            _namespaces.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: set[str] = set()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its schema, "foo(Tensor x) -> Tensor"; return its name.

        Raises:
          RuntimeError: there is an op of that name, or it is no schema.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        parsed = parse_schema(schema)
        whole = parsed._replace(name=f"{self.ns}::{parsed.name}")
        define(whole)
        self._defined.add(whole.whole_name)
        return parsed.name

    def impl(
        self, op_name: str | OpOverload, fn: Callable[..., Any], dispatch_key: str = "", *,
        with_keyset: bool = False, allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Implement an op, defined or not, for a dispatch key: "CPU", "CompositeImplicitAutograd".

        Implementations for "Autograd" and the like go before all others.

        Raises:
          TypeError: `fn` cannot be called.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or IMPLICIT
        operator = find(f"{self.ns}::{_name_of(op_name)}")
        if operator is None:
            if self.ns == "aten":
                raise NotImplementedError(
                    f"aten::{_name_of(op_name)}: PyTorch's own ops cannot be given other "
                    "implementations here; torch.overrides.TorchFunctionMode replaces calls of them"
                )
            return  # as in PyTorch it may be defined later, by an extension that is not there
        if fn is not fallthrough_kernel:
            operator.kernels[key] = fn

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Refuse: there is no dispatcher that would call it."""
        raise NotImplementedError("leafax has no dispatcher whose fallback could be replaced")

    def _register_fake(
        self, op_name: str, fn: Any, _stacklevel: int = 1, *, allow_override: bool = True
    ) -> None:
        """Accept what tells results' shapes, which nothing here calls."""

    def _destroy(self) -> None:
        for name in self._defined:
            OPERATORS.pop(name, None)
        if self.kind == "DEF":
            _namespaces.discard(self.ns)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def _name_of(op: Any) -> str:
    if isinstance(op, str):
        return op.rpartition("::")[2]
    return str(op).partition(".")[2]
