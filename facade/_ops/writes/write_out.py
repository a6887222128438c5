"""`out=`: results written into tensors that the caller brings, with PyTorch's rules."""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional.program.dtypes import result_type
from leafax.functional.program.op import Op

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle, tensors_in
from ..._core.trie import local
from ..._core.vmap_checks import refuse_random_out
from ..._dispatch.tangents import has_tangent
from ..._rules.strides.layouts import elementwise
from ..._signatures.numeric_warnings import ANSWERS, answers
from ..._storage.overlap import JOINS, by_kernel, check_overlap
from .apply_inplace import apply_inplace, check_inplace
from .check_dtype import IN_ITS_DTYPE, check_type
from .check_kind import check_parts, check_tensor, place, results, said, written
from .resize_out import resize_output, warn_of_resize, write_tensordot

# Functions that PyTorch makes of others, by what says that it takes no part in autograd.
_WRITERS = {
    "outer": "mul", "true_divide": "div", "cross": "linalg_cross", "lu_solve": "linalg_lu_solve",
    "nn.functional.normalize": "div", "nn.functional.logsigmoid": "log_sigmoid_forward",
    "float_power": "pow", "square": "pow", "qr": "linalg_qr", "svd": "_linalg_svd",
    "column_stack": "cat", "hstack": "cat", "vstack": "cat", "dstack": "cat", "msort": "sort",
    "take_along_dim": "gather", "nanmean": "nansum", "inner": "mul", "linalg.det": "_linalg_det",
    "linalg.cholesky": "linalg_cholesky_ex", "linalg.vecdot": "vdot",
    "linalg.eigh": "_linalg_eigh", "linalg.eigvalsh": "_linalg_eigh", "linalg.multi_dot": "mm",
    "linalg.slogdet": "_linalg_slogdet", "slogdet": "_linalg_slogdet",
    "linalg.lu_factor": "linalg_lu_factor_ex", "linalg.inv": "linalg_inv_ex",
    "linalg.solve": "_linalg_solve_ex", "linalg.solve_ex": "_linalg_solve_ex",
    "linalg.svd": "_linalg_svd", "linalg.svdvals": "_linalg_svd", "linalg.matrix_power": "matmul",
}  # fmt: skip
# Functions that are copied into `out=` in sight of autograd.
_COPYING = frozenset({
    "quantile", "nanquantile", "linalg.cond", "linalg.norm", "linalg.matrix_norm",
    "linalg.tensorinv", "linalg.tensorsolve", "special.ndtr",
})  # fmt: skip
# They resize `out=` without a warning.
_SILENT = frozenset({"addbmm", "multinomial", "bernoulli", "narrow_copy"})


# Written by what autograd has no formula for: the function whose derivative is missing.
_UNDERIVED = {
    "diag": "diagonal_copy", "softmax": "softmax", "log_softmax": "log_softmax",
    **{name: name for name in ("conj_physical", "floor_divide", "heaviside", "slice_scatter")},
    **{name + "_copy": name + "_copy" for name in (
        "expand diagonal alias as_strided view permute unfold squeeze unsqueeze transpose t select "
        "slice view_as_real view_as_complex detach").split()},
}  # fmt: skip


def _missing(op: Op, operands: Any) -> str:
    if op.name == "diag" and next(tensors_in(operands)).dim() == 1:
        return "diag_embed"
    return _UNDERIVED[op.qualified]


@cache
def underived(name: str) -> Op:
    """Return the write of a result whose gradient is an error.

    Its edges lead to what the result was made of.
    """
    return Op(
        lambda self, other, operands=(): other,
        name=f"{name}_out", backward="NotImplemented", overwrites=True,
        no_gradient=(RuntimeError, f"derivative for aten::{name} is not implemented"),
    )  # fmt: skip


def _copied(op: Op, operands: Any) -> bool:
    """Tell whether PyTorch copies a result into `out=` in sight of autograd."""
    if op.name == "inner":  # a product with a number is written by `mul`
        return all(t.dim() for t in tensors_in(operands))
    return op.qualified in _COPYING


def _writer(op: Op, operands: Any) -> str:
    """Return the function that PyTorch writes into `out=` with."""
    if op.qualified in _UNDERIVED:
        return "aten::" + _missing(op, operands)
    if op.namespace == "fft":
        if op.name.startswith(("hfft", "irfft")):
            return "_fft_c2r"
        real = not any(t.is_complex() for t in tensors_in(operands))
        short = op.name in ("fft", "rfft", "rfft2", "rfftn")
        return "_fft_r2c" if short and real else "_fft_c2c"
    return _WRITERS.get(op.qualified) or said(op)


def check_out(op: Op, out: Any, operands: Any) -> None:
    """Raise if autograd would have to record what `out=` cannot carry.

    Args:
      operands: the call's other arguments.
    """
    if not (isinstance(out, Handle) or results(op)):
        check_tensor(op, out)
    if op.random:
        refuse_random_out()
    if not local.mode.grad or not op.differentiable or _copied(op, operands):
        return
    if op.qualified in _UNDERIVED:
        if not (out._tracked and out._leaf):
            return
    tensors = list(tensors_in((out, operands)))
    # Autograd is not asked of inference tensors alone: the write is refused.
    if any(t._tracked for t in tensors) and not all(t._v.inference for t in tensors):
        raise RuntimeError(
            f"{_writer(op, operands)}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def write_out(op: Op, result: Any, out: Any, operands: Any = ()) -> Any:
    """Write results into the `out=` tensors; returns those.

    Args:
      operands: the call's other arguments, which must not overlap with `out` in part.
    """
    if isinstance(result, tuple):
        named = hasattr(result, "_fields")
        check_parts(out, len(result), place(op), said(op))
        for i, (r, o) in enumerate(zip(result, out, strict=True)):
            check_tensor(op, o)
            _make_ready(op, r, o, operands, i)
        for r, o in zip(result, out, strict=True):
            _fill(op, r, o, operands)
        return written(type(result))(*out) if named else tuple(out)
    check_tensor(op, out)
    if op.name == "inner" and _copied(op, operands):
        return write_tensordot(out, result)
    _make_ready(op, result, out, operands)
    return _fill(op, result, out, operands)


def _make_ready(op: Op, result: Any, out: Any, operands: Any, part: int = 0) -> None:
    """Check an `out=` tensor and give it the result's shape: all, before one is written to.

    Args:
      part: which of several results it is.
    """
    if not _copied(op, operands):
        check_out(op, out, operands or (result,))
    if has_tangent(result) or has_tangent(out):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is "
            "an out= function"
        )
    if local.vmap is not None:
        local.vmap.refuse_out(op.name, (result, out))
    check_inplace(out, False)
    by_element = op.name == "outer" or elementwise(op, list(operands))
    try:
        check_type(op, result, out, operands, part)
    except RuntimeError as refusal:
        if by_element and by_kernel(refusal):
            check_overlap(op, out, operands)
        raise
    if op.name in JOINS and tuple(out.shape) != tuple(result.shape):
        warn_of_resize(out, tuple(result.shape))
    other = tuple(out.shape) != tuple(result.shape)
    check_overlap(op, out, operands, resized=other and not by_element)
    if by_element and other:
        # What is cast is resized as well; a part of complex numbers (`abs`, `angle`) is not cast.
        cast = out._v.dtype not in (result._v.dtype, _computed(result, operands))
        if cast and (result._v.dtype.kind == "c" or not _any_complex(operands)):
            warn_of_resize(out, tuple(result.shape))
    rows = op.name == "nan_to_num" and result._v.dtype.kind in "iub"  # which is copied
    lies = result.stride() if by_element and not rows or _by_columns(op) else None
    resize_output(out, tuple(result.shape), op.name in _SILENT | JOINS, lies)


def _fill(op: Op, result: Any, out: Any, operands: Any) -> Any:
    """Write one result."""
    if _copied(op, operands):
        out.copy_(result)
    elif op.qualified in _UNDERIVED and local.mode.grad and result._tracked:
        made_of = [t for t in tensors_in(operands) if t._tracked] or [result]
        apply_inplace(underived(_missing(op, operands)), out, result.detach(), made_of)
    else:
        _copy(out, result)
    if op.name in ANSWERS or op.name in IN_ITS_DTYPE:
        answers(out, operands)
    return out


def _any_complex(operands: Any) -> bool:
    return any(t._v.dtype.kind == "c" for t in tensors_in(operands))


def _computed(result: Any, operands: Any) -> Any:
    """Return the dtype that an elementwise op computes in: of its result, or its operands."""
    if result._v.dtype != bool:
        return result._v.dtype
    return result_type(*[t._v.aval.struct() for t in tensors_in(operands)])


def _by_columns(op: Op) -> bool:
    """Tell whether `out=` comes to lie as the result does where it is resized."""
    return op.namespace == "linalg" or op.name in _COLUMNS or op.name in JOINS - {"stack"}


_COLUMNS = frozenset({
    "qr", "triangular_solve", "geqrf", "ormqr", "lu_solve", "sort", "msort", "diff", "nonzero",
    "addr",
})  # fmt: skip


def _copy(out: Any, result: Any) -> Any:
    with no_grad():
        return out.copy_(result)
