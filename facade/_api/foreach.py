"""`torch._foreach_*`: one op on each tensor of a list, as PyTorch's optimizers call it.

Each tensor has a node of its own in the graph, where PyTorch has one node for the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from .._autograd.formulas.scalar_ops import ADD, DIV, MUL, SUB
from .._core.handle import Handle
from .._dispatch.record import apply
from .._ops.calls.functions import function
from .._ops.writes.apply_inplace import apply_inplace
from .._signatures.parser import bind, explain_refusal
from .._signatures.table import known_signatures

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = (
    "add", "sub", "mul", "div", "pow", "lerp", "addcmul", "addcdiv", "maximum", "minimum",
    "clamp_min", "clamp_max",
)  # fmt: skip
_vector_norm = function(TABLE["linalg.vector_norm"])
_EXTREMA = {name: TABLE[name] for name in ("maximum", "minimum")}
# What PyTorch calls with a number; the gradient is that of an extremum all the same.
_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
# What PyTorch writes one by one in C++, where a number stays a number.
_BY_NUMBER = {op.name: op for op in (ADD, SUB, MUL, DIV)}


def _bound(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by the names of the parameters that they are for."""
    lines = known_signatures(name)
    bound = bind(lines, args, kwargs, name)
    if bound is None:
        raise TypeError(explain_refusal(lines, args, kwargs, name))
    names = [p.name for parameters in bound for p in parameters]
    return dict(zip(names, (*args, *kwargs.values()), strict=True))


def _unpacked(scalars: Any, n: int) -> list[Any]:
    """Return the numbers that a tensor holds, one for each of `n` tensors."""
    if scalars.dim() != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead."
        )
    if len(scalars) != n:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {n} but got {len(scalars)} "
            "instead."
        )
    return scalars.tolist()  # type: ignore[no-any-return]


def _each(tensors: list[Any], given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments of each tensor: an element of a list, or the same for all."""
    n = len(tensors)
    if not n or "src" in given and not given["src"]:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for k, x in given.items():
        if isinstance(x, (tuple, list)) and (k.startswith("tensor") or _holds_tensors(x)):
            if len(x) != n:
                raise RuntimeError(
                    f"Tensor lists must have the same number of tensors, got {n} and {len(x)}"
                )
    columns = []
    for k, x in given.items():
        if k == "scalars" and isinstance(x, Handle):
            x = _unpacked(x, n)
        if isinstance(x, (tuple, list)) and len(x) != n:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        columns.append(x if isinstance(x, (tuple, list)) else [x] * n)
    return [dict(zip(given, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * n


def _holds_tensors(x: Any) -> bool:
    return bool(x) and isinstance(x[0], Handle)


def _call(op: str, t: Any, given: dict[str, Any], inplace: bool) -> Any:
    if op == "norm":
        return _norm(t, **given)
    if op == "max" and not t.numel():
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements "
            "is undefined."
        )
    if op.startswith("addc"):
        tensors, value = given["tensor1"], given.get("scalars", given.get("value", 1))
        return getattr(t, op + "_" * inplace)(tensors, given["tensor2"], value=value)
    options = {k: x for k, x in given.items() if k in ("alpha", "memory_format", "non_blocking")}
    args = [x for k, x in given.items() if k not in options]
    if op in _EXTREMA:
        if not isinstance(args[0], Handle) and t.requires_grad and not inplace:
            args = [t.new_full((), args[0])]
        if isinstance(args[0], Handle):
            return (apply_inplace if inplace else apply)(_EXTREMA[op], t, *args)
        op = _BOUNDS[op]
    if inplace and op in _BY_NUMBER and not options and isinstance(args[0], (int, float, complex)):
        return apply_inplace(_BY_NUMBER[op], t, *args)
    return getattr(t, op + "_" * inplace)(*args, **options)


def _norm(t: Any, ord: Any = 2, dtype: Any = None) -> Any:
    if not t.numel() and ord == float("inf"):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the "
            "operation does not have an identity"
        )
    return _vector_norm(t, ord, dtype=dtype)


def _over_lists(op: str, inplace: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}" + "_" * inplace

    def foreach(*args: Any, **kwargs: Any) -> Any:
        given = _bound(name, args, kwargs)
        first = given.pop("self")
        if not isinstance(first, (tuple, list)):
            exponents = list(given["exponent"])
            return tuple([first**t for t, _ in zip(exponents, _each(exponents, {}), strict=True)])
        other = given.get("other")
        if isinstance(other, Handle) and other.dim():  # type: ignore[attr-defined]
            t: Any = other
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {t.dim()} dimensions and "
                f"{t.numel()} elements."
            )
        rows = _each(list(first), given)
        made = [_call(op, t, row, inplace) for t, row in zip(first, rows, strict=True)]
        return first if inplace else tuple(made)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"`{op}` of each tensor of a list; other lists go along with it."
    return foreach


FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _op in (*_UNARY, *_BINARY):
    FUNCTIONS[f"_foreach_{_op}"] = _over_lists(_op, False)
    FUNCTIONS[f"_foreach_{_op}_"] = _over_lists(_op, True)
for _op in ("clone", "max", "norm", "mm"):
    FUNCTIONS[f"_foreach_{_op}"] = _over_lists(_op, False)
for _op in ("copy", "zero"):
    FUNCTIONS[f"_foreach_{_op}_"] = _over_lists(_op, True)
