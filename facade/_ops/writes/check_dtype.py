"""Dtypes that `out=` may have, and PyTorch's errors for the others."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import (
    category,
    cpp_name,
    default_float,
    result_type,
    scalar_name,
)
from leafax.functional.program.op import Op

from ..._core.handle import tensors_in
from ..._storage.overlap import JOINS

_OF_PLACES = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
    "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype "
    "{1} and out_int32 flag is "
)
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
    "cummax": "expected scalar_type {0} but found {1}",
    "cummin": "expected scalar_type {0} but found {1}",
    "logsigmoid": "expected scalar type {0} but found {1}",
    "solve_triangular": "expected scalar type {0} but found {1}",
    "quantile": "quantile() out tensor must be same dtype as the input tensor",
    "nanquantile": "quantile() out tensor must be same dtype as the input tensor",
    "float_power": "the output given to float_power has dtype {1} but the operation's result "
    "requires dtype {0}",
    "polar": "Expected object of scalar type {0} but got scalar type {1} for argument 'out'",
    "vecdot": "linalg.vecdot: Expected out of dtype{0} but found {1}",
    "matrix_norm": "linalg.matrix_norm expected out tensor dtype {0} but got: {1}",
    "linalg.norm": "linalg.norm expected out tensor dtype {0} but got: {1}",
    "multi_dot": "multi_dot(): expected out tensor to have dtype {2} but got {3}",
    "mv": "addmv input tensors must have the same dtype, but got {1}, {0}, and {0}",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has "
    "dtype{0} and result has dtype {1}",
    "nonzero": "nonzero: Expected out tensor to have scalar type Long but got scalar type{1}",
    "nonzero_static": "nonzero_static: Expected out tensor to have scalar type Long but got scalar "
    "type{1}",
    "histc": "torch.histogram: input tensor and hist tensor should have the same dtype, but got "
    "input {2} and hist {3}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false.  (Could "
    "this error message be improved?  If so, please report an enhancement request to PyTorch.)",
}
# Of functions with several results, by result.
_SAME_TYPES = {
    "kthvalue": ("output values must be of same type as input",
                 "output indices must be of scalar type Long"),
    "mode": ("expected scalar type '{0}' but got '{1}' for values output",
             "expected scalar type '{0}' but got '{1}' for indices output"),
    "histogram": (
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
        "{2} and hist {3}",
        "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got "
        "input {2} and bin_edges {3} for dimension 0",
    ),
    "frexp": ("torch.frexp() expects mantissa to have dtype {2} but got {3}",
              "torch.frexp() expects exponent to have {2} dtype but got {3}"),
}  # fmt: skip
# They write any type that holds their results: what they are called, and their results.
_SAFE = {
    "cholesky": ("cholesky", "result"),
    "cholesky_inverse": ("cholesky_inverse", "result"),
    "cholesky_solve": ("cholesky_solve", "result"),
    "geqrf": ("torch.geqrf", "a", "tau"),
    "linalg.cond": ("linalg.cond", "result"),
    "linalg.eig": ("torch.linalg.eig", "eigenvalues", "eigenvectors"),
    "linalg.eigvals": ("torch.linalg.eigvals", "eigenvalues"),
    "linalg.householder_product": ("torch.linalg.householder_product", "result"),
    "linalg.lstsq": ("torch.linalg.lstsq", "solution", "residuals", "rank", "singular_values"),
    "linalg.matrix_power": ("matrix_power", "result"),
    "linalg.matrix_rank": ("torch.linalg.matrix_rank", "result"),
    "linalg.pinv": ("linalg.pinv", "result"),
    "linalg.tensorinv": ("tensorinv", "result"),
    "linalg.tensorsolve": ("tensorsolve", "result"),
    "matrix_power": ("matrix_power", "result"),
}
_ANY_TYPE = frozenset({
    "sum", "prod", "nansum", "cumsum", "cumprod", "bernoulli", "split_copy",
})  # fmt: skip
# Without an in-place form of their own, and yet they cast to the type of `out`.
_CASTING = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "mean", "std", "var", "any", "all", "maximum", "minimum",
    "norm", "amax", "amin", "sub",
    "logical_and", "logical_or", "logical_xor", "logical_not", "fmax", "fmin", "logaddexp",
    "bitwise_and", "bitwise_or", "true_divide", "outer", "logsumexp",
    "nanmean", "angle", "inner", "logaddexp2",
})  # fmt: skip


# What they say to a type that cannot hold their results.
_UNCAST = {
    "result": "result type {0} can't be cast to the desired output type {1}",
    "ldexp": "ldexp can't be cast to the desired output type {1}",
    "mvlgamma": "mvlgamma: result type {2} can't be cast to the desired output type {0}",
    "logsumexp": "logsumexp(): Expected floating point type for result tensor, but got: {1}",
}


def check_cast(want: Any, have: Any, name: str, given: Any = None) -> None:
    """Raise if numbers of one dtype do not go into another, as this op says it.

    Args:
      given: the dtype of its first operand, where that is not what is written into.
    """
    if category(want) > category(have):
        name = "result" if name == "ldexp" and category(have) > 1 else name  # which is a product
        text = _UNCAST.get(name, _UNCAST["result"])
        dtypes = (want, have, have if given is None else given)
        raise RuntimeError(text.format(*map(scalar_name, dtypes)))


_BOOLS = frozenset({"isposinf", "isneginf", "signbit"})
# With an in-place form, and yet they write their own type alone.
_EXACT = frozenset({
    "addmm", "addmv", "baddbmm", "renorm", "index_add", "index_copy", "scatter", "scatter_add",
    "tril", "triu", "linalg.vector_norm", "scatter_reduce", "index_reduce",
})  # fmt: skip


# Their kernels know one dtype.
_ONE_TYPE = frozenset({
    "abs", "ceil", "conj_physical", "floor", "frac", "neg", "round", "sgn", "sign", "trunc",
    "clamp", "clamp_min", "clamp_max", "bitwise_not", "softshrink", "hardshrink", "gelu",
    "softplus",
})  # fmt: skip
_CLAMPS = frozenset({"clamp", "clamp_min", "clamp_max"})


def _check_safe(have: Any, want: Any, name: str, result: str) -> None:
    if category(want) > category(have):
        raise RuntimeError(
            f"{name}: Expected {result} to be safely castable from {scalar_name(want)} dtype, but "
            f"got {result} with dtype {scalar_name(have)}"
        )


def _check_fft(op: Op, have: Any, want: Any) -> None:
    kind = "a complex" if want.kind == "c" else "a floating point"
    if have.kind == want.kind:
        return
    name = op.name
    if name.endswith(("2", "n")):
        name = name[:-1] + "n"
        name = "fftn" if name == "ifftn" else name
    raise RuntimeError(f"{name} expects {kind} output tensor, but got {scalar_name(have)}")


def check_joined(out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Check what `cat` asks of `out=` before it asks whether the tensors fit together."""
    tensors = list(tensors_in((args, kwargs)))
    dim = next((x for x in (*args, *kwargs.values()) if isinstance(x, int)), 0)
    if tensors and all(t.dim() for t in tensors) and -tensors[0].dim() <= dim < tensors[0].dim():
        _check_joined(out._v.dtype, result_type(*[t._v.aval.struct() for t in tensors]))


def _check_joined(have: Any, want: Any) -> None:
    if category(want) > category(have):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {scalar_name(have)}"
        )


def check_type(op: Op, result: Any, out: Any, operands: Any, part: int = 0) -> None:
    """Raise if a function does not write its result into a tensor of the dtype of `out`.

    Args:
      operands: the call's other arguments.
      part: which of several results it is.
    """
    have, want = out._v.dtype, result._v.dtype
    if have == want or op.name in _ANY_TYPE:
        return
    if op.qualified in _SAFE:
        names = _SAFE[op.qualified]
        _check_safe(have, want, names[0], names[1 + part])
        # Powers from the second on are written by a product, which writes its own type alone.
        if op.name == "matrix_power" and not {0, 1} & {x for x in operands if type(x) is int}:
            raise other_type(want, have)
        return
    if op.namespace == "fft":
        _check_fft(op, have, want)
        return
    if op.name in _BOOLS:
        raise RuntimeError(f"{op.name} does not support non-boolean outputs.")
    if op.name in ("any", "all"):
        if have.name in ("uint8", "bool"):
            return
        kind = scalar_name(have)
        raise RuntimeError(f"{op.name} only supports bool tensor for result, got: {kind}")
    if op.name in JOINS:
        _check_joined(have, want)
        return
    given = list(tensors_in(operands))
    parted = op.name == "abs" and any(t.is_complex() for t in given)
    if parted and have.kind == "c":  # into which it is computed as it is
        want = given[0]._v.dtype
        if have == want:
            return
        parted = False
    parted = parted or op.name in _CLAMPS and len(given) > 1
    if op.name in _ONE_TYPE and not parted:
        raise RuntimeError(f"Found dtype {scalar_name(have)} but expected {scalar_name(want)}")
    message = _SAME_TYPE.get(op.qualified) or _SAME_TYPE.get(op.name)
    if op.name == "heaviside" and have.kind == "c":
        message = "heaviside is not yet implemented for complex tensors."
    # `mv` adds to what is in `out`, unless that must be resized.
    if op.name == "mv" and (out.dim() > 1 or out.numel() not in (1, result.numel())):
        message = None
    if op.name in _SAME_TYPES:
        message = _SAME_TYPES[op.name][part]
    if op.name in ("searchsorted", "bucketize"):
        message = _OF_PLACES + str(want == "int32")
    if message is not None:
        names = scalar_name(want), scalar_name(have), cpp_name(want), cpp_name(have)
        raise RuntimeError(message.format(*names))
    casts = op.inplace or op.qualified in _CASTING or op.namespace == "special"
    if casts and op.qualified not in _EXACT:
        check_cast(want, have, op.name, given[0]._v.dtype if given else None)
        return
    raise other_type(want, have)


def other_type(want: Any, have: Any) -> RuntimeError:
    """Return what kernels say that write into tensors of one dtype alone."""
    return RuntimeError(
        f"Expected out tensor to have dtype {cpp_name(want)}, but got {cpp_name(have)} instead"
    )


# These compute in the dtype of `out=`: a sum of floats into integers is a sum of integers.
IN_ITS_DTYPE = frozenset({"sum", "prod", "cumsum", "cumprod", "mean", "nansum"})


def in_its_dtype(op: Op, args: Any, kwargs: dict[str, Any], out: Any) -> dict[str, Any]:
    """Return the keywords of a reduction into `out`, with the dtype that it computes in.

    Raises:
      RuntimeError: if another dtype was asked for.
      NotImplementedError: for dtypes that PyTorch has no kernel for.
    """
    have, asked = out._v.dtype, kwargs.get("dtype")
    kind = category(have)
    if op.name == "nansum":
        if asked is not None and asked.np != have:
            raise RuntimeError(
                "nansum: provided dtype must match dtype of result. Got "
                f"{scalar_name(have)} and {scalar_name(asked.np)}"
            )
        if kind != 2 and category(args[0]._v.dtype) >= 2:
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{scalar_name(have)}'")
    if asked is not None:
        if asked.np != have:
            raise RuntimeError(
                f"Expected out tensor to have dtype {cpp_name(asked.np)}, but got "
                f"{cpp_name(have)} instead"
            )
        return kwargs
    if op.name in ("cumsum", "cumprod") and kind == 0:
        raise NotImplementedError(f"\"{op.name}_out_cpu\" not implemented for 'Bool'")
    if op.name == "mean" and category(args[0]._v.dtype) < 2:
        return kwargs  # it says itself what it cannot
    if op.name == "mean" and kind < 2:  # PyTorch divides a sum of integers in place
        raise RuntimeError(
            f"result type {scalar_name(default_float())} can't be cast to the desired output type "
            f"{scalar_name(have)}"
        )
    return kwargs | {"dtype": out.dtype}
