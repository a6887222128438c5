"""The methods that `Tensor` gets from the op table: operators, casts, and one method an op."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from .._core import dtypes
from .._core.warn_once import drops_imaginary
from .._dispatch.known_calls import in_one_step
from .._dispatch.record import apply
from .._ops.calls import methods, operators_fast
from .._ops.calls.functions import by_name
from .._ops.creation.to import copied_as
from .._ops.writes.apply_inplace import apply_inplace, check_inplace, frozen

_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip

# Python's name of a binary operator -> the op; all have an in-place and a reflected form.
_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_REFLECTED = {"add": "add", "mul": "mul", "and": "bitwise_and", "or": "bitwise_or",
              "xor": "bitwise_xor", "sub": "rsub"}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}

# Functions write in place (`torch.celu_(x)`), tensors have no such methods.
_NO_METHOD = frozenset({
    "alpha_dropout", "celu", "dropout", "feature_alpha_dropout", "feature_dropout", "rrelu",
    "selu", "threshold",
})  # fmt: skip


def install(cls: Any) -> None:
    """Give the tensor class what follows from the table; what it defines itself stays."""
    own = set(dir(cls))
    for name, op in TABLE.items():
        if op.namespace or "." in name:
            continue
        if op.method and name not in own:
            setattr(cls, name, by_name(methods.method(op), op, name, method=True))
        if op.inplace and name not in _NO_METHOD and name + "_" not in own:
            method = methods.inplace_method(op)
            setattr(cls, name + "_", by_name(method, op, name, "_", True))
    for name, dtype_name in _CASTS.items():
        setattr(cls, name, _cast(name, dtype_name))
    for name, op_name in _BINARY.items():
        op = TABLE[op_name]
        setattr(cls, f"__{name}__", operators_fast.binary(op, cls))
        setattr(cls, f"__i{name}__", _inplace(op, cls))
        if name == "truediv":
            cls.__rtruediv__ = _divided_by  # type: ignore[attr-defined]
        elif name in _REFLECTED:
            setattr(cls, f"__r{name}__", operators_fast.binary(TABLE[_REFLECTED[name]], cls))
        else:
            setattr(cls, f"__r{name}__", _reflected(op, cls))
    for name in _COMPARISONS:
        setattr(cls, f"__{name}__", operators_fast.binary(TABLE[name], cls))
    for name, op_name in _UNARY.items():
        setattr(cls, f"__{name}__", operators_fast.unary(TABLE[op_name], cls))
    cls.__invert__ = _of_integers(cls.__invert__)


def _of_integers(invert: Callable[..., Any]) -> Callable[..., Any]:
    def checked(self: Any) -> Any:
        if self._v.dtype.kind not in "biu":
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
            )
        return invert(self)

    return checked


def _cast(name: str, dtype_name: str) -> Callable[..., Any]:
    dtype = getattr(dtypes, dtype_name)

    def cast(self: Any, *args: Any, memory_format: Any = None, **others: Any) -> Any:
        if args:
            given = "1 was" if len(args) == 1 else f"{len(args)} were"
            raise TypeError(f"{name}() takes 0 positional arguments but {given} given")
        if others:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(others))}'")
        if memory_format is not None:
            return self.to(dtype, memory_format=memory_format)
        if self._v.dtype == dtype.np:
            return self
        out = copied_as(self, dtype.np)
        drops_imaginary(self._v.dtype, dtype.np, self._v.numel)
        return out

    cast.__doc__ = f"This tensor as {dtype_name}."
    kind = inspect.Parameter
    cast.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        kind("self", kind.POSITIONAL_ONLY),
        kind("memory_format", kind.KEYWORD_ONLY, default=None, annotation=Any),
    ])  # fmt: skip
    return cast


def _divided_by(self: Any, other: Any) -> Any:
    """Compute `3 / x` as PyTorch does: `x.reciprocal() * 3`."""
    other = operators_fast.operand(other, type(self))
    if other is NotImplemented:
        return other
    return apply(TABLE["mul"], apply(TABLE["reciprocal"], self), other)


def _reflected(op: Any, cls: type) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        other = operators_fast.operand(other, cls)
        return other if other is NotImplemented else apply(op, other, self)

    return method


def _refused(x: Any) -> Exception | None:
    """Return the error for a write to `x`, which PyTorch checks before the operands; else None."""
    try:
        if not frozen(x):
            check_inplace(x)
    except RuntimeError as error:
        return error
    return None


def _inplace(op: Any, cls: type) -> Callable[..., Any]:
    @in_one_step
    def method(self: Any, other: Any) -> Any:
        other = operators_fast.operand(other, cls)
        if other is NotImplemented:
            return other
        try:
            return apply_inplace(op, self, other)
        except Exception:
            refused = _refused(self)
            if refused is None:
                raise
        raise refused

    return method
