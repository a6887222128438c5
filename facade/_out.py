"""`out=`: results written into tensors that the caller brings, with PyTorch's rules."""

from __future__ import annotations

import warnings
from typing import Any

from leafax.functional import Op, category, cpp_name, result_type, scalar_name

from ._cautions import ANSWERS, answers
from ._dual import tangent
from ._handle import Handle
from ._inplace import check_inplace
from ._layout import elementwise
from ._modes import no_grad
from ._overlap import check_overlap
from ._trace import local

_SAME_TYPE = {
    "where": "Expected out type to be {0} but got {1}",
    "index_select": "index_select(): self and result must have the same scalar type",
    "amax": "Expected the dtype for input and out to match, but got {0} for input's dtype and {1} "
    "for out's dtype.",
    "amin": "Expected the dtype for input and out to match, but got {0} for input's dtype and {1} "
    "for out's dtype.",
    "multinomial": "multinomial expects Long tensor out, got: {1}",
    "masked_select": "masked_select(): self and result must have the same scalar type",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {0} and "
    "out.dtype = {1}",
    "complex": "Expected object of scalar type {0} but got scalar type {1} for argument 'out'",
    "nan_to_num": "nan_to_num: dtype of out: {1} should be same as input: {0}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "dot": "result dtype {1} does not match input dtype {0}",
    "vdot": "result dtype {1} does not match input dtype {0}",
    "addbmm": "self and mat2 must have the same dtype, but got {1} and {0}",
    "logcumsumexp": "expected scalar_type {0} but found {1}",
}
_ANY_TYPE = frozenset({"sum", "prod", "nansum", "cumsum", "cumprod"})
_JOINS = frozenset({"cat", "stack", "hstack", "vstack", "dstack", "column_stack", "concat"})
# Without an in-place form of their own, and yet they cast to the type of `out`.
_CASTING = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "mean", "std", "var", "any", "all", "maximum", "minimum",
    "norm", "amax", "amin", "sub",
    "logical_and", "logical_or", "logical_xor", "logical_not", "fmax", "fmin", "logaddexp",
    "isin", "bitwise_and", "bitwise_or", "float_power", "true_divide", "outer", "logsumexp",
    "nanmean",
})  # fmt: skip


_BOOLS = frozenset({"isposinf", "isneginf", "signbit"})
# With an in-place form, and yet they write their own type alone.
_EXACT = frozenset({
    "addmm", "addmv", "baddbmm", "renorm", "index_add", "index_copy", "scatter", "scatter_add",
    "tril", "triu", "linalg.vector_norm", "scatter_reduce",
})  # fmt: skip


def check_out(op: Op, out: Any, operands: Any) -> None:
    """Raise if autograd would have to record what `out=` cannot carry.

    Args:
      operands: the call's other arguments.
    """
    for o in out if type(out) in (tuple, list) else (out,):
        if not isinstance(o, Handle):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(o).__name__}")
    if not local.mode.grad or not op.differentiable:
        return
    if any(t.requires_grad for t in _tensors((out, operands))):
        name = "mul" if op.name == "outer" else op.name  # which it is
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def write_out(op: Op, result: Any, out: Any, operands: Any = ()) -> Any:
    """Write results into the `out=` tensors; returns those.

    Args:
      operands: the call's other arguments, which must not overlap with `out` in part.
    """
    if isinstance(result, tuple):
        for r, o in zip(result, out, strict=True):
            write_out(op, r, o, operands)
        return type(result)(*out) if hasattr(result, "_fields") else tuple(out)
    check_out(op, out, (result,))
    if local.mode.dual and any(
        tangent(t, n) is not None for t in (result, out) for n in local.mode.dual
    ):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is "
            "an out= function"
        )
    if local.look is not None:
        from .func._refusals import refuse

        for t in (result, out):
            refuse(
                t,
                f"Batching rule not implemented for aten::{op.name}.out; the fallback path doesn't "
                "work on out= or view ops.",
            )
    check_inplace(out, False)
    _check_type(op, result, out, operands)
    check_overlap(op, out, operands)
    by_element = op.name == "outer" or elementwise(op, list(operands))
    if by_element and tuple(out.shape) != tuple(result.shape):
        if out._v.dtype != _computed(result, operands):  # what is cast is resized as well
            resized(out, tuple(result.shape))
    resize_output(out, tuple(result.shape))
    _copy(out, result)
    if op.name in ANSWERS:
        answers(out, operands)
    return out


def _computed(result: Any, operands: Any) -> Any:
    """The dtype that an elementwise op computes in: that of its result, or what it compares."""
    if result._v.dtype != bool:
        return result._v.dtype
    return result_type(*[t._v.aval.struct() for t in _tensors(operands)])


def resize_output(out: Any, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor the shape of the result, with a warning if it had elements."""
    if tuple(out.shape) == shape:
        return
    resized(out, shape)
    from ._fillers import reshaped_storage

    reshaped_storage(out, shape)


def resized(out: Any, shape: tuple[int, ...]) -> None:
    """Warn that an `out=` tensor with elements gets another shape."""
    if out.numel():
        warnings.warn(
            "An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape "
            f"{list(shape)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse "
            "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=5,
        )


def _copy(out: Any, result: Any) -> Any:
    with no_grad():
        return out.copy_(result)


# Their kernels know one dtype.
_ONE_TYPE = frozenset({
    "abs", "ceil", "conj_physical", "floor", "frac", "neg", "round", "sgn", "sign", "trunc",
    "clamp", "clamp_min", "clamp_max", "bitwise_not",
})  # fmt: skip


def _check_type(op: Op, result: Any, out: Any, operands: Any) -> None:
    have, want = out._v.dtype, result._v.dtype
    if have == want or op.name in _ANY_TYPE:
        return
    if op.name in _BOOLS:
        raise RuntimeError(f"{op.name} does not support non-boolean outputs.")
    if op.name in ("any", "all"):
        if have.name == "uint8":
            return
        kind = scalar_name(have)
        raise RuntimeError(f"{op.name} only supports bool tensor for result, got: {kind}")
    if op.name in _JOINS:
        if category(want) > category(have):
            raise TypeError(
                "torch.cat(): input types can't be cast to the desired output type "
                f"{scalar_name(have)}"
            )
        return
    parted = op.name == "abs" and any(t.is_complex() for t in _tensors(operands))
    if op.name in _ONE_TYPE and not parted:
        raise RuntimeError(f"Found dtype {scalar_name(have)} but expected {scalar_name(want)}")
    if op.name in _SAME_TYPE:
        message = _SAME_TYPE[op.name].format(scalar_name(want), scalar_name(have))
        raise RuntimeError(message)
    if (op.inplace or op.qualified in _CASTING) and op.qualified not in _EXACT:
        if category(want) > category(have):
            raise RuntimeError(
                f"result type {scalar_name(want)} can't be cast to the desired output type "
                f"{scalar_name(have)}"
            )
        return
    raise RuntimeError(
        f"Expected out tensor to have dtype {cpp_name(want)}, but got {cpp_name(have)} instead"
    )


def _tensors(args: Any) -> Any:
    for a in args.values() if isinstance(args, dict) else args:
        if isinstance(a, Handle):
            yield a
        elif isinstance(a, (tuple, list, dict)):
            yield from _tensors(a)
