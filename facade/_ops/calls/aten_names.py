"""PyTorch's names of ops and their overloads, `aten.mm.default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.program import Slot

from ..._core.overrides.state import (
    ask,
    finds_override,
    flat,
    overloaded,
    overrides,
    takes_overrides,
)

# What PyTorch calls the overload, where it is not "default".
_TENSOR = frozenset({"add", "sub", "mul", "div", "true_divide"})  # for numbers, too
_BY_OTHER = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "rsub", "lerp", "masked_fill",
    "bitwise_and", "bitwise_or", "bitwise_xor",
})  # fmt: skip
_LAST = {"lerp": "weight", "masked_fill": "value"}  # which operand decides, if not `other`
_FIXED = {
    "var": "correction", "std": "correction", "var_mean": "correction", "std_mean": "correction",
    "where": "self", "select": "int", "transpose": "int", "unbind": "int", "slice": "Tensor",
    "narrow": "Tensor", "chunk": "Tensor", "index": "Tensor",
}  # fmt: skip
_BY_DIM = {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "max": "dim", "min": "dim"}
_RENAMED = {
    "softmax": "_softmax", "log_softmax": "_log_softmax", "true_divide": "div",
    "layer_norm": "native_layer_norm", "reshape": "view", "flatten": "view", "ravel": "view",
    "T": "permute", "narrow": "slice", "chunk": "split", "norm": "linalg_vector_norm",
    "vector_norm": "linalg_vector_norm", "cross": "linalg_cross", "inv": "linalg_inv_ex",
    "pad": "constant_pad_nd", "group_norm": "native_group_norm", "conv1d": "convolution",
    "conv2d": "convolution", "conv3d": "convolution", "nll_loss": "nll_loss_forward",
    "max_pool2d": "max_pool2d_with_indices", "max_pool3d": "max_pool3d_with_indices",
    "_native_batch_norm": "native_batch_norm",
}  # fmt: skip


class OpOverload:
    """One overload of an op; compared by identity."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._packet, self._overloadname = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"
        self._namespace, self._opname = packet._namespace, packet.__name__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """Return the op with all its overloads."""
        return self._packet

    @property
    def _schema(self) -> Any:
        return find(self._packet, self._overloadname).schema

    @property
    def namespace(self) -> str:
        """Return the namespace of the op: "aten"."""
        return self._namespace

    def name(self) -> str:
        """Return the op's name: "aten::mm", "aten::sum.dim_IntList"."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._packet._qualified_op_name}{end}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _called(self, self._packet, self._overloadname, args, kwargs)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        op = f"{self._namespace}.{self._packet.__name__}"
        return f"<OpOverload(op='{op}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An op by PyTorch's name; its overloads are attributes: `aten.mm.default`."""

    __module__ = "torch._ops"

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__ = name
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if self._namespace != "aten" and overload not in self.overloads():
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        if self._namespace == "aten":
            return [name for name, x in vars(self).items() if isinstance(x, OpOverload)]
        return list(finders.own(self._qualified_op_name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _called(self, self, "", args, kwargs)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Finders:
    """Find what names stand for; the layers that know them set these."""

    aten: Callable[[str], Callable[..., Any] | None]  # the function of a name of ATen's
    own: Callable[[str], dict[str, Any]]  # a program's operators of a name, by overload


finders = _Finders()


def find(packet: OpOverloadPacket, overload: str) -> Any:
    """Return what a name stands for: a function, or an operator of a program's own.

    Args:
      overload: its name; "" for the only one.
    """
    name, space = packet.__name__, packet._namespace
    if space == "aten":
        found: Any = finders.aten(name)
    else:
        known = finders.own(packet._qualified_op_name)
        found = known.get(overload) or next(iter(known.values()), None)
    if found is None:
        raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
    return found


def _called(op: Any, packet: OpOverloadPacket, overload: str, args: Any, kwargs: Any) -> Any:
    """Call an op, or what overrides it."""
    given = (*args, *kwargs.values())
    if takes_overrides() and (overrides.modes or not overrides.off and finds_override(given)):
        made = ask(op, overloaded(flat(given)), args, kwargs)
        if made is not NotImplemented:
            return made
    return find(packet, overload)(*args, **kwargs)


class _Namespace:
    """The ops of one namespace: `torch.ops.aten`, `torch.ops.mylib`."""

    def __init__(self, name: str) -> None:
        self.__name__ = f"torch.ops.{name}"
        self._name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._name != "aten" and not finders.own(f"{self._name}::{name}"):
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        made = OpOverloadPacket(name, self._name)
        if self._name == "aten":
            setattr(self, name, made)
        else:  # it may be defined anew
            made = _packets.setdefault(made._qualified_op_name, made)
        return made

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' from 'torch.ops'>"


_packets: dict[str, OpOverloadPacket] = {}
_namespaces: dict[str, _Namespace] = {}


def namespace(name: str) -> _Namespace:
    """Return the ops of a namespace."""
    return _namespaces.setdefault(name, _Namespace(name))


aten = namespace("aten")


def overload_of(state: Any) -> OpOverload:
    """Return the overload that PyTorch would have called for a recorded op."""
    call = state.call
    op = getattr(call, "op", None)
    if op is None:
        return getattr(aten, "vjp").default  # type: ignore[no-any-return]  # noqa: B009
    name, _, dim = op.name.rstrip("_").partition(".")
    overload = dim or _FIXED.get(name, "default")
    given = call.arguments
    if name in _TENSOR:
        overload = "Tensor" if given.get("rounding_mode") is None else "Tensor_mode"
    elif name in _BY_OTHER:
        overload = "Scalar" if _is_number(state, given.get(_LAST.get(name, "other"))) else "Tensor"
    elif name == "pow":
        base, exponent = given.get("input"), given.get("exponent", given.get("other"))
        if _is_number(state, base):
            overload = "Scalar"
        else:
            overload = "Tensor_Scalar" if _is_number(state, exponent) else "Tensor_Tensor"
    elif name in _BY_DIM and given.get("dim") is not None:
        overload = _BY_DIM[name]
    elif name == "squeeze" and given.get("dim") not in (None, ()):
        overload = "dim" if isinstance(given["dim"], int) else "dims"
    elif name == "split":
        sizes = given.get("split_size_or_sections", given.get("split_size"))
        name, overload = ("split", "Tensor") if isinstance(sizes, int) else (
            "split_with_sizes", "default",
        )  # fmt: skip
    if op.overwrites:
        name += "_"
    return getattr(getattr(aten, _RENAMED.get(name, name)), overload)  # type: ignore[no-any-return]


def _is_number(state: Any, argument: Any) -> bool:
    return not isinstance(argument, Slot) or state.operands[argument.index].weak
