"""`torch._foreach_*`: one op on each tensor of a list, as PyTorch's optimizers call it.

Each tensor has a node of its own in the graph, where PyTorch has one node for the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._handle import Handle
from ._inplace import apply_inplace
from ._scalars import ADD, DIV, MUL, SUB

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "lerp", "addcmul", "addcdiv")
# With a number, each of these is a bound.
_BOUNDS = {
    "maximum": "clamp_min", "minimum": "clamp_max", "clamp_min": "maximum", "clamp_max": "minimum",
}  # fmt: skip
# What PyTorch writes one by one in C++, where a number stays a number.
_BY_NUMBER = {op.name: op for op in (ADD, SUB, MUL, DIV)}
_ALONE = ("clone", "norm", "max", "mm")


def _tensors(name: str, tensors: Any) -> list[Any]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _spread(arg: Any, n: int) -> list[Any]:
    """An argument for each of `n` tensors: an element of a list, or the same for all."""
    if not isinstance(arg, (tuple, list)):
        return [arg] * n
    if len(arg) != n:
        if arg and isinstance(arg[0], Handle):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {n} and {len(arg)}"
            )
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return list(arg)


def _call(op: str, t: Any, args: list[Any], options: dict[str, Any], inplace: bool) -> Any:
    if op in ("addcmul", "addcdiv") and len(args) == 3:  # PyTorch's `value` is positional here
        *args, options = *args[:2], {**options, "value": args[2]}
    if op in _BOUNDS and isinstance(args[0], Handle) == op.startswith("clamp"):
        op = _BOUNDS[op]
    if inplace and op in _BY_NUMBER and not options and isinstance(args[0], (int, float, complex)):
        return apply_inplace(_BY_NUMBER[op], t, *args)
    return getattr(t, op + "_" * inplace)(*args, **options)


def _over_lists(op: str, inplace: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}" + "_" * inplace

    def foreach(self: Any, *args: Any, **kwargs: Any) -> Any:
        if op == "pow" and not isinstance(self, (tuple, list)):
            return tuple([self**t for t in _tensors(name, args[0])])
        tensors = _tensors(name, self)
        n = len(tensors)
        given = [_spread(a, n) for a in args]
        named = {k: _spread(v, n) for k, v in kwargs.items()}
        made = []
        for i, t in enumerate(tensors):
            options = {k: v[i] for k, v in named.items()}
            made.append(_call(op, t, [a[i] for a in given], options, inplace))
        return self if inplace else tuple(made)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"`{op}` of each tensor of a list; other lists go along with it."
    return foreach


FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _op in (*_UNARY, *_BINARY, *_BOUNDS):
    FUNCTIONS[f"_foreach_{_op}"] = _over_lists(_op, False)
    FUNCTIONS[f"_foreach_{_op}_"] = _over_lists(_op, True)
for _op in _ALONE:
    FUNCTIONS[f"_foreach_{_op}"] = _over_lists(_op, False)
for _op in ("copy", "zero"):
    FUNCTIONS[f"_foreach_{_op}_"] = _over_lists(_op, True)
