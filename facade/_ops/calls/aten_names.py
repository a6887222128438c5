"""PyTorch's names of ops and their overloads, `aten.mm.default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.program import Slot

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

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """Return the op with all its overloads."""
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

    # Finds the function of an op by its name; the layer that knows all functions sets it.
    find: Callable[[str], Callable[..., Any] | None]

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fn = self.find(self.__name__)
        if fn is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{self.__name__}'")
        return fn(*args, **kwargs)

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
