"""`leafax.ops.aten`: PyTorch's names of ops, as checkpoint policies compare them.

>>> import leafax
>>> leafax.ops.aten.mm.default
<OpOverload(op='aten.mm', overload='default')>
"""

from __future__ import annotations

from typing import Any

from leafax.functional import TABLE, Slot

# What PyTorch calls the overload for a tensor or a number, where it is not "default".
_TENSOR = frozenset({
    "add", "sub", "mul", "div", "true_divide", "eq", "ne", "lt", "le", "gt", "ge", "remainder",
    "fmod", "bitwise_and", "bitwise_or", "bitwise_xor",
})  # fmt: skip
_BY_DIM = {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "max": "dim", "min": "dim"}
_RENAMED = {
    "softmax": "_softmax", "log_softmax": "_log_softmax", "true_divide": "div",
    "layer_norm": "native_layer_norm", "reshape": "view",
}  # fmt: skip


class OpOverload:
    """One overload of an op; compared by identity."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._packet, self._overloadname = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The op with all its overloads."""
        return self._packet

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._packet(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An op by PyTorch's name; its overloads are attributes: `aten.mm.default`."""

    __module__ = "torch._ops"

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ._table import call

        op = TABLE.get(self.__name__) or TABLE.get(f"nn.functional.{self.__name__}")
        if op is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{self.__name__}'")
        return call(op, args, kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Namespace:
    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        made = OpOverloadPacket(name)
        setattr(self, name, made)
        return made


aten = _Namespace()


def overload_of(state: Any) -> OpOverload:
    """The overload that PyTorch would have called for a recorded op."""
    call = state.call
    op = getattr(call, "op", None)
    if op is None:
        return getattr(aten, "vjp").default  # type: ignore[no-any-return]  # noqa: B009
    name, overload = op.name.rstrip("_"), "default"
    given = dict(zip(op.parameters, call.args, strict=False)) | call.kwargs
    ranks: list[int] = [len(v.shape) for v in state.operands]
    if name in ("matmul", "mm", "linear"):
        if name == "linear" and given.get("bias") is not None and ranks[0] == 2:
            name = "addmm"
        elif len(ranks) > 1:
            name = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot"}.get((ranks[0], ranks[1]), "bmm")
            name = "mm" if op.name == "linear" else name
    elif name in _TENSOR:
        overload = "Tensor"
    elif name == "pow":
        exponent = given.get("exponent", given.get("other"))
        number = not isinstance(exponent, Slot) or state.operands[exponent.index].weak
        overload = "Tensor_Scalar" if number else "Tensor_Tensor"
    elif name in _BY_DIM and given.get("dim") is not None:
        overload = _BY_DIM[name]
    elif name in ("select", "transpose", "unbind"):
        overload = "int"
    elif name in ("split", "slice"):
        overload = "Tensor"
    if op.overwrites:
        name += "_"
    return getattr(getattr(aten, _RENAMED.get(name, name)), overload)  # type: ignore[no-any-return]
