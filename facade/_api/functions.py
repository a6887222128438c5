"""The functions of the `leafax` namespace: those of the op table, and those written here."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import category, default_float, set_default_float
from leafax.functional.program.dtypes import promote_types as _promote_types
from leafax.functional.program.dtypes import result_type as _result_type
from leafax.functional.program.op import TABLE

from .._core.dtypes import as_dtype, dtype, of
from .._core.grad_modes import no_grad
from .._core.handle import Handle
from .._core.trie import local
from .._core.vmap_protocol import refuse
from .._ops.calls import functions, methods
from .._ops.calls.functions import plain
from .._ops.creation.factory_tools import placed
from .._ops.indexing.masks import nonzero as nonzero
from .._ops.writes.write_out import resize_output
from .._signatures import parse_composites
from .._signatures.check_arguments import check_lines, parsed
from .._tensor.tensor import Tensor
from .._tracing.record import apply

_TABLE_FUNCTIONS = functions.top_level()
_TABLE_FUNCTIONS.update({k: placed(_TABLE_FUNCTIONS[k]) for k in ("tril_indices", "triu_indices")})
globals().update(_TABLE_FUNCTIONS)

from .._ops.calls.removed_names import DEPRECATED as _DEPRECATED  # noqa: E402
from .._ops.calls.removed_names import FUNCTIONS as _REMOVED  # noqa: E402
from .._ops.calls.removed_names import warned as _warned  # noqa: E402
from .._ops.composites.complex_parts import adjoint as adjoint  # noqa: E402
from .._ops.composites.complex_parts import conj as conj  # noqa: E402
from .._ops.composites.complex_parts import conj_physical as conj_physical  # noqa: E402
from .._ops.composites.complex_parts import imag as imag  # noqa: E402
from .._ops.composites.complex_parts import outer as ger  # noqa: E402, F401
from .._ops.composites.complex_parts import outer as outer  # noqa: E402
from .._ops.composites.complex_parts import positive as positive  # noqa: E402
from .._ops.composites.complex_parts import real as real  # noqa: E402
from .._ops.composites.data_dependent_sizes import argwhere as argwhere  # noqa: E402
from .._ops.composites.data_dependent_sizes import bincount as bincount  # noqa: E402
from .._ops.composites.data_dependent_sizes import histc as histc  # noqa: E402
from .._ops.composites.data_dependent_sizes import masked_select as masked_select  # noqa: E402
from .._ops.composites.data_dependent_sizes import nonzero_static as nonzero_static  # noqa: E402
from .._ops.composites.data_dependent_sizes import (  # noqa: E402
    repeat_interleave as repeat_interleave,
)
from .._ops.composites.data_dependent_sizes import unique as unique  # noqa: E402
from .._ops.composites.data_dependent_sizes import (  # noqa: E402
    unique_consecutive as unique_consecutive,
)
from .._ops.composites.einsum import einsum as einsum  # noqa: E402
from .._ops.composites.fill_methods import index_put as index_put  # noqa: E402
from .._ops.composites.fill_methods import index_put_ as index_put_  # noqa: E402
from .._ops.composites.fill_methods import scatter as scatter  # noqa: E402
from .._ops.composites.finite_differences import (  # noqa: E402
    as_strided_scatter as as_strided_scatter,
)
from .._ops.composites.finite_differences import gradient as gradient  # noqa: E402
from .._ops.composites.finite_differences import index_reduce as index_reduce  # noqa: E402
from .._ops.composites.finite_differences import lu as lu  # noqa: E402
from .._ops.composites.histogram import histogram as histogram  # noqa: E402
from .._ops.composites.histogram import histogramdd as histogramdd  # noqa: E402
from .._ops.composites.joins import broadcast_tensors as broadcast_tensors  # noqa: E402
from .._ops.composites.joins import cartesian_prod as cartesian_prod  # noqa: E402
from .._ops.composites.joins import column_stack as column_stack  # noqa: E402
from .._ops.composites.joins import combinations as combinations  # noqa: E402
from .._ops.composites.joins import dstack as dstack  # noqa: E402
from .._ops.composites.joins import hstack as hstack  # noqa: E402
from .._ops.composites.joins import meshgrid as meshgrid  # noqa: E402
from .._ops.composites.joins import row_stack as row_stack  # noqa: E402
from .._ops.composites.joins import vstack as vstack  # noqa: E402
from .._ops.composites.kron import kron as kron  # noqa: E402
from .._ops.composites.low_rank import pca_lowrank as pca_lowrank  # noqa: E402
from .._ops.composites.low_rank import svd_lowrank as svd_lowrank  # noqa: E402
from .._ops.composites.matmul import matmul as matmul  # noqa: E402
from .._ops.composites.reductions_with_forms import corrcoef as corrcoef  # noqa: E402
from .._ops.composites.reductions_with_forms import cov as cov  # noqa: E402
from .._ops.composites.reductions_with_forms import (  # noqa: E402
    cumulative_trapezoid as cumulative_trapezoid,
)
from .._ops.composites.reductions_with_forms import diff as diff  # noqa: E402
from .._ops.composites.reductions_with_forms import isin as isin  # noqa: E402
from .._ops.composites.reductions_with_forms import max as max  # noqa: E402
from .._ops.composites.reductions_with_forms import median as median  # noqa: E402
from .._ops.composites.reductions_with_forms import min as min  # noqa: E402
from .._ops.composites.reductions_with_forms import msort as msort  # noqa: E402
from .._ops.composites.reductions_with_forms import nanmedian as nanmedian  # noqa: E402
from .._ops.composites.reductions_with_forms import norm as norm  # noqa: E402
from .._ops.composites.reductions_with_forms import trapezoid as trapezoid  # noqa: E402
from .._ops.composites.reductions_with_forms import trapezoid as trapz  # noqa: E402
from .._ops.composites.reductions_with_forms import where as where  # noqa: E402
from .._ops.composites.shapes import atleast_1d as atleast_1d  # noqa: E402
from .._ops.composites.shapes import atleast_2d as atleast_2d  # noqa: E402
from .._ops.composites.shapes import atleast_3d as atleast_3d  # noqa: E402
from .._ops.composites.shapes import broadcast_shapes as broadcast_shapes  # noqa: E402
from .._ops.composites.shapes import dsplit as dsplit  # noqa: E402
from .._ops.composites.shapes import hsplit as hsplit  # noqa: E402
from .._ops.composites.shapes import is_nonzero as is_nonzero  # noqa: E402
from .._ops.composites.shapes import is_same_size as is_same_size  # noqa: E402
from .._ops.composites.shapes import tensor_split as tensor_split  # noqa: E402
from .._ops.composites.shapes import unravel_index as unravel_index  # noqa: E402
from .._ops.composites.shapes import vsplit as vsplit  # noqa: E402
from .._ops.composites.split import split as split  # noqa: E402
from .._ops.composites.tensordot import tensordot as tensordot  # noqa: E402
from .._ops.creation.dlpack import FUNCTIONS as _BUFFERS  # noqa: E402
from .._ops.creation.from_data import finish as _finish  # noqa: E402
from .._ops.creation.make_strided import empty_permuted as empty_permuted  # noqa: E402
from .._ops.creation.make_strided import empty_strided as empty_strided  # noqa: E402
from .._ops.views.unsafe_split import FUNCTIONS as _UNSAFE  # noqa: E402
from .._ops.views.view_copies import COPIES as _COPIES  # noqa: E402
from .._signatures.numeric_warnings import REDUCED as _REDUCED  # noqa: E402
from .._signatures.numeric_warnings import SPREAD as _SPREAD  # noqa: E402
from .._signatures.numeric_warnings import casts_first as _casts_first  # noqa: E402
from .._signatures.numeric_warnings import enough_elements as _enough_elements  # noqa: E402
from .._signatures.numeric_warnings import names_its_dim as _names_its_dim  # noqa: E402
from .._signatures.numeric_warnings import resizes_its_result as _resizes_its_result  # noqa: E402
from .._storage.conj_neg_bits import _neg_view as _neg_view  # noqa: E402
from .._storage.conj_neg_bits import held as _held  # noqa: E402
from .._storage.conj_neg_bits import is_conj as is_conj  # noqa: E402
from .._storage.conj_neg_bits import is_neg as is_neg  # noqa: E402
from .._storage.conj_neg_bits import resolve_conj as resolve_conj  # noqa: E402
from .._storage.conj_neg_bits import resolve_neg as resolve_neg  # noqa: E402
from .._storage.conj_neg_bits import view_as_real as view_as_real  # noqa: E402
from .._storage.copy_warnings import FUNCTIONS as _TOLD_OF  # noqa: E402
from .._tensor import extra_methods as _extra_methods  # noqa: E402, F401
from .._tensor.dense_answers import FUNCTIONS as _DENSE  # noqa: E402
from ..nn._functional.cosine import cosine_similarity as cosine_similarity  # noqa: E402
from ..nn._functional.dropout import or_input as _or_input  # noqa: E402
from ..nn._functional.norms import native_batch_norm as native_batch_norm  # noqa: E402
from ..special import polygamma as polygamma  # noqa: E402
from .foreach import FUNCTIONS as _FOREACH  # noqa: E402
from .namespace_extra import FUNCTIONS as _COMPOSED  # noqa: E402

globals().update(_COPIES)
globals()["cross"] = _names_its_dim(globals()["cross"])
globals()["ldexp"] = _resizes_its_result(globals()["ldexp"])
for _name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
    globals()[_name] = _or_input(globals()[_name])
for _name in _SPREAD:
    globals()[_name] = _enough_elements(_name, globals()[_name])
for _name in _REDUCED:
    globals()[_name] = _casts_first(globals()[_name])
for _name, _told in _TOLD_OF.items():
    globals()[_name] = _told(_name, globals()[_name])
globals().update(_FOREACH)
globals().update(_UNSAFE)
_COMPOSED = _COMPOSED | _BUFFERS | _DENSE | _REMOVED
globals().update(_COMPOSED)


def is_tensor(obj: Any) -> builtins.bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> builtins.bool:
    """Whether a tensor's dtype is floating point."""
    return builtins.bool(input.is_floating_point())


def is_signed(input: Any) -> builtins.bool:
    """Whether a tensor's dtype has negative numbers."""
    return builtins.bool(input.is_signed())


def is_complex(input: Any) -> builtins.bool:
    """Whether a tensor's dtype is complex."""
    return builtins.bool(input.is_complex())


def numel(input: Any) -> builtins.int:
    """The number of elements."""
    return builtins.int(input.numel())


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both promote to."""
    first = as_dtype("promote_types", type1, "'type1' (position 1)")
    second = as_dtype("promote_types", type2, "'type2' (position 2)")
    return of(_promote_types(first.np, second.np))


_OF_RESULT_TYPE = frozenset({"tensor", "other", "scalar", "scalar1", "scalar2"})


def result_type(*args: Any, **kwargs: Any) -> dtype:
    """The dtype of an arithmetic op on two tensors or numbers.

    PyTorch has names for them by their kinds: `tensor, other`, `scalar, tensor`,
    `scalar1, scalar2`.
    """
    for name in kwargs:
        if name not in _OF_RESULT_TYPE:
            raise TypeError(f"result_type() got an unexpected keyword argument '{name}'")
    given = (*args, *kwargs.values())
    if len(given) != 2:
        raise TypeError(f"result_type() takes 2 positional arguments but {len(given)} were given")

    class _Fact:
        def __init__(self, t: Any) -> None:
            self.dtype, self.ndim = t._v.dtype, t.dim()

    facts = [_Fact(t) if isinstance(t, Tensor) else plain(t) for t in given]
    return of(_result_type(*facts, default_float=default_float()))


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether PyTorch's promotion rules allow writing `from_` into `to`."""
    source = as_dtype("can_cast", from_, "'from_' (position 1)")
    return category(source.np) <= category(as_dtype("can_cast", to, "'to' (position 2)").np)


def normal(
    *args: Any, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Draws from normal distributions, `normal(mean, std, size=None, *, generator, out, dtype)`.

    Args:
      mean, std: numbers, or tensors that broadcast with each other.
      size: the result's shape, where both are numbers.
    """
    if kwargs.get("out") is not None and local.look is None:  # which `vmap` refuses
        return _normal_into(*args, **kwargs)
    return _finish(_TABLE_FUNCTIONS["normal"](*args, **kwargs), requires_grad, device)


def _normal_into(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, out: Any, generator: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """`normal` with `out`, whose dtype may be any that the draws have a kernel for."""
    with no_grad():
        if isinstance(std, Handle):
            shape = broadcast_shapes(std.shape, mean.shape if isinstance(mean, Handle) else ())  # type: ignore[attr-defined]
            resize_output(out, tuple(shape))
            return out.normal_(0.0, 1.0, generator=generator).mul_(std).add_(mean)
        if isinstance(mean, Handle):  # it is added to what is there, of whatever shape
            return out.normal_(0.0, std, generator=generator).add_(mean)
        if size is not None:
            out.resize_(size)
        return out.normal_(mean, std, generator=generator)


def get_default_dtype() -> dtype:
    """What Python floats become."""
    return of(default_float())


def set_default_dtype(d: dtype) -> None:
    """Set what Python floats become: a floating point dtype."""
    if not isinstance(d, dtype):
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_float(d.np)
    local.set_mode(local.mode)


def equal(input: Any, other: Any) -> builtins.bool:
    """Whether two tensors have the same shape and values; runs the program."""
    refuse("equal", input, other)
    if tuple(input.shape) != tuple(other.shape):
        return False
    return builtins.bool(np.array_equal(_held(input), _held(other)))


def allclose(
    input: Any, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:  # fmt: skip
    """Whether all elements satisfy `|input - other| <= atol + rtol * |other|`; runs the program."""
    check_lines(("Tensor input, Tensor other",), (input, other), {}, "allclose")
    refuse("allclose", input, other)
    with no_grad():  # no view is asked for its history
        near = apply(TABLE["isclose"], input, other, rtol, atol, equal_nan)
        return builtins.bool(near.all().item())


def is_inference(input: Any) -> builtins.bool:
    """Whether a tensor was made in inference mode."""
    return builtins.bool(input.is_inference())


Tensor.nonzero = nonzero  # type: ignore[attr-defined]
Tensor.equal = equal  # type: ignore[attr-defined]
Tensor.allclose = allclose  # type: ignore[attr-defined]

parse_composites.methods(Tensor)

# What PyTorch has as functions that write in place, most of them as methods too.
_INPLACE = {
    f"{name}_": parsed(getattr(Tensor, f"{name}_", None) or methods.inplace_method(TABLE[name]))
    for name in (
        "abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh "
        "as_strided asin asinh atan atanh ceil celu clamp clamp_max clamp_min clip conj_physical "
        "cos cosh deg2rad detach dropout erf erfc exp exp2 expm1 fill fix floor frac gcd i0 lcm "
        "ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu "
        "resize_as round rrelu rsqrt selu sigmoid sin sinc sinh sqrt square tan tanh threshold "
        "trunc xlogy zero"
    ).split()
    if hasattr(Tensor, f"{name}_") or name in TABLE
}
globals().update(_INPLACE)
globals().update({name: _warned(name, globals()[name]) for name in _DEPRECATED})

__all__ = [  # noqa: PLE0604
    *_TABLE_FUNCTIONS, *_COPIES, *_INPLACE, *_FOREACH, *_COMPOSED,
    "as_strided_scatter", "gradient", "histogram", "histogramdd", "index_reduce", "lu",
    "pca_lowrank", "svd_lowrank", "empty_permuted", "empty_strided", "native_batch_norm",
    "unravel_index",
    "argwhere", "bincount", "histc", "masked_select", "nonzero_static", "repeat_interleave",
    "unique", "unique_consecutive", "index_put", "index_put_", "resolve_neg", "scatter",
    "cartesian_prod", "combinations", "corrcoef", "cov", "cumulative_trapezoid", "diff", "isin",
    "max", "median", "min", "msort", "nanmedian", "norm", "trapezoid", "trapz", "where",
    "polygamma",
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "dsplit", "hsplit", "is_conj",
    "is_neg", "_neg_view", "view_as_real", "is_nonzero", "is_same_size", "resolve_conj",
    "split", "tensor_split", "vsplit",
    "is_tensor", "is_signed", "is_floating_point", "is_complex", "numel", "promote_types",
    "result_type",
    "can_cast", "get_default_dtype", "set_default_dtype", "equal", "allclose", "nonzero",
    "is_inference", "adjoint", "conj", "real", "imag", "outer", "ger",
]  # fmt: skip

parse_composites.functions(globals(), __all__)
