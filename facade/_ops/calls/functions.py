"""Functions and methods that follow from the op table.

What a caller may write is wider than what an op's body takes: `dtype` objects, NumPy scalars,
`axis` for `dim`, sizes as separate arguments. It is made uniform here, once for all ops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from leafax.functional.ops.shape.dimensions import flatten_size
from leafax.functional.program.op import TABLE, Op

from ..._core.dtypes import dtype as dtype_class
from ..._core.dtypes import python_number
from ..._core.handle import Handle
from ..._core.trie import local
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._host.joins import joined
from ..._rules.strides.layouts import elementwise
from ..._runtime.host.duplicate_inputs import apart
from ..._signatures.check_arguments import find_op_error, precheck, with_numbers
from ..._signatures.deprecated_forms import OLDER, translate_older_form
from ..._signatures.wrap_composites import parsed
from ..._storage.overlap import JOINS, by_kernel, check_overlap
from ..autocast.casts import off
from ..creation import factories
from ..creation.generator import key
from ..writes.check_dtype import IN_ITS_DTYPE, check_joined, in_its_dtype
from ..writes.check_kind import check_kind
from ..writes.write_out import check_out, write_out

# Other names that PyTorch takes for a parameter.
_ALIASES = {
    "axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "self": "input",
    "from": "from_", "x1": "input", "x2": "other", "sizes": "size",
    "axis0": "dim0", "axis1": "dim1",
}  # fmt: skip
_FORMS = frozenset({"sum", "prod"})  # not every form of these takes `out`

# Functions whose tensors come as separate arguments: meshgrid(x, y).
_PACKED = {"meshgrid": 0, "broadcast_tensors": 0, "block_diag": 0, "einsum": 1}
_ALWAYS_PACKED = ("block_diag",)  # in no other way


def plain(x: Any) -> Any:
    """Return an argument as op bodies take it."""
    kind = type(x)
    if kind is int or kind is float or kind is bool or kind is str or x is None:
        return x
    if isinstance(x, Handle):
        return x
    if kind is dtype_class:
        return x.np
    if isinstance(x, tuple):
        return tuple(plain(y) for y in x)
    if isinstance(x, list):
        return tuple(plain(y) for y in x)
    if isinstance(x, np.generic):
        return python_number(x)
    return x


def call(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record `op` with a caller's arguments."""
    args, kwargs = uniform(op, args, kwargs)
    return apply(op, *args, **kwargs)


def uniform(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a caller's arguments in the op's own names; errors as PyTorch's argument parser's."""
    plain_args = tuple([plain(a) for a in args])
    if kwargs:
        names = op.parameters
        made = {}
        for k, v in kwargs.items():
            if k not in names:
                k = _ALIASES.get(k, k)
                if k == "input" and "input" not in names and names:
                    k = names[0]
            if k not in names and not (op.random and k == "generator"):
                raise TypeError(f"{op.name}() got an unexpected keyword argument '{k}'")
            made[k] = plain(v)
        if op.view and not plain_args and names[0] in made:
            plain_args = (made.pop(names[0]),)
        kwargs = made
    offset = 1 if op.random else 0
    if len(plain_args) > len(op.parameters) - offset and not any(
        p.kind is p.VAR_POSITIONAL for p in op.signature.parameters.values()
    ):
        raise TypeError(
            f"{op.name}() takes {len(op.parameters) - offset} positional arguments but "
            f"{len(plain_args)} were given"
        )
    if op.random:
        operands = (*plain_args, *kwargs.values())
        where = next((t._v.device for t in operands if isinstance(t, Handle)), None)
        plain_args = (key(kwargs.pop("generator", None), where), *plain_args)
    return plain_args, kwargs


def two_tensors(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
    """Return both operands of an op of two tensors, however given; None if they are not two."""
    if kwargs:
        args, named_ = uniform(op, args, kwargs)
        args += tuple(named_[p] for p in op.parameters[len(args) :] if p in named_)
    if len(args) != 2 or not all(isinstance(t, Handle) for t in args):
        return None
    return args[0], args[1]


def find_meant_call(
    op: Op, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any],
    method: str = "", name: str = "", written: tuple[Any, ...] | None = None,
) -> Any:  # fmt: skip
    """Return what a call that failed stands for, as `(args, kwargs)`; None where its error stands.

    Args:
      written: the arguments as the caller wrote them, if they are not `args`.
      method: the method that was called, if one was.
      name: the function's, where it is not the op's.

    Raises:
      TypeError: if PyTorch's parser would not have let the call in.
    """
    older = (
        translate_older_form(op.name, args, kwargs, method)
        if isinstance(error, TypeError)
        else None
    )
    if older is not None:
        return older
    wrong = find_op_error(op, args if written is None else written, kwargs, method, name)
    if wrong is not None:
        raise wrong from None
    return with_numbers(op, error, args, kwargs)


def function(op: Op, name: str = "") -> Callable[..., Any]:
    """Return the module-level function of an op.

    Args:
      name: where the op has another name itself: `special.expit` is `sigmoid`.
    """

    if op.name == "flatten":
        return flattening(op)
    packed = _PACKED.get(op.name) if not op.namespace else None
    always = op.name in _ALWAYS_PACKED
    asked = name or op.qualified

    def fn(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if packed is not None and (
            always or len(args) > packed and isinstance(args[packed], Handle)
        ):
            args = (*args[:packed], args[packed:])
        if out is None:
            try:
                precheck(asked, args, kwargs, op.name)
                return call(op, args, kwargs)
            except Exception as error:
                meant = find_meant_call(op, error, args, kwargs, name=name)
                if meant is None:
                    raise
                return fn(*meant[0], **meant[1])
        older = translate_older_form(op.name, args, kwargs) if op.name in OLDER else None
        if older is not None:
            return fn(*older[0], out=out, **older[1])
        check_kind(op, out, (args, kwargs))
        if op.name in _FORMS:
            precheck(asked, args, {**kwargs, "out": out}, op.name)
        if op.name in IN_ITS_DTYPE and not op.namespace:
            kwargs = in_its_dtype(op, args, kwargs, out)
        check_out(op, out, (args, kwargs))
        if op.name in JOINS and op.name != "stack":
            check_joined(out, args, kwargs)
        if local.mode.autocast is not None:  # it knows no `out=` forms
            return off(fn, *args, out=out, **kwargs)
        operands = (*args, *kwargs.values())
        try:
            result = call(op, args, kwargs)
        except NotImplementedError as refusal:
            if by_kernel(refusal) and isinstance(out, Handle) and elementwise(op, list(operands)):
                check_overlap(op, out, operands)
            raise
        return write_out(op, result, out, operands)

    made: Any = fn if op.random else in_one_step(fn, op)
    return named(_gathering(made, op.name) if op.name in JOINS else made, op, op.name)


def _gathering(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of a sequence of tensors, which may come from anywhere."""

    def gather(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) in (list, tuple):
            if not kwargs and len(args) < 3 or len(args) == 1 and [*kwargs] == ["dim"]:
                dim = args[1] if len(args) == 2 else kwargs.get("dim", 0)
                out = joined(name, args[0], dim)
                if out is not None:
                    return out
            args = (apart(args[0]), *args[1:])
        return fn(*args, **kwargs)

    return gather


@cache
def _is_flat(shape: tuple[int, ...], start_dim: int, end_dim: int) -> bool:
    return bool(shape) and flatten_size(shape, start_dim, end_dim) == shape


def flattening(op: Op, method: bool = False) -> Callable[..., Any]:
    """Return `flatten`, which gives the tensor itself where there is nothing to do."""

    def fn(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
        if type(start_dim) is type(end_dim) is int and isinstance(input, Handle):
            if _is_flat(input._v.shape, start_dim, end_dim):
                return input
        else:
            precheck(op.name, (input, start_dim, end_dim), {}, op.name, method)
        return call(op, (input, start_dim, end_dim), {})

    def flatten(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            meant = find_meant_call(op, error, args, kwargs, op.name if method else "")
            if meant is None:
                raise
            return fn(*meant[0], **meant[1])

    return named(flatten, op, op.name)


def named(fn: Callable[..., Any], op: Op, name: str) -> Callable[..., Any]:
    """Give a function the name, the docstring and the signature of its op; return it."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = op.fn.__doc__
    fn.__signature__ = op.signature  # type: ignore[attr-defined]
    return fn


def by_name(
    fn: Callable[..., Any], op: Op, name: str, end: str = "", method: bool = False
) -> Callable[..., Any]:
    """Return the function or method `fn` of an op by one of its names, which its errors tell.

    Args:
      end: "_" of methods that write in place.
    """
    if name == op.name:
        return fn
    return named(parsed(fn, name, method, first=False, shown=name + end), op, name + end)


def top_level() -> dict[str, Callable[..., Any]]:
    """Return every function that belongs into the `leafax` namespace, by name.

    The factories take more than their op's arguments: see `_ops/creation/factories.py`.
    """
    return {
        name: by_name(function(op), op, name)
        for name, op in TABLE.items()
        if op.function and not op.namespace and "." not in name and not hasattr(factories, name)
    }


def in_namespace(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return every function of one namespace, such as `"nn.functional"`."""
    prefix = namespace + "."
    return {
        name[len(prefix) :]: by_name(function(op), op, name[len(prefix) :])
        for name, op in TABLE.items()
        if op.function
        and op.namespace == namespace
        and name.startswith(prefix)
        and not name.startswith(prefix + "_")
    }
