"""The functions of the `leafax` namespace: those of the op table, and those written here."""

from __future__ import annotations

from leafax.functional.program.op import TABLE as _TABLE

from .._core.default_dtype import get_default_dtype as get_default_dtype
from .._core.default_dtype import set_default_dtype as set_default_dtype
from .._dispatch.conj_neg_bits import _neg_view as _neg_view
from .._dispatch.conj_neg_bits import is_conj as is_conj
from .._dispatch.conj_neg_bits import is_neg as is_neg
from .._dispatch.conj_neg_bits import resolve_conj as resolve_conj
from .._dispatch.conj_neg_bits import resolve_neg as resolve_neg
from .._dispatch.conj_neg_bits import view_as_real as view_as_real
from .._dispatch.known_calls import in_one_step as _in_one_step
from .._ops.calls import functions as _functions
from .._ops.calls import methods as _methods
from .._ops.calls.promotion import can_cast as can_cast
from .._ops.calls.promotion import promote_types as promote_types
from .._ops.calls.promotion import result_type as result_type
from .._ops.calls.removed_names import DEPRECATED as _DEPRECATED
from .._ops.calls.removed_names import FUNCTIONS as _REMOVED
from .._ops.calls.removed_names import warned as _warned
from .._ops.composites.comparisons import allclose as allclose
from .._ops.composites.comparisons import equal as equal
from .._ops.composites.complex_parts import adjoint as adjoint
from .._ops.composites.complex_parts import conj as conj
from .._ops.composites.complex_parts import conj_physical as conj_physical
from .._ops.composites.complex_parts import imag as imag
from .._ops.composites.complex_parts import outer as ger  # noqa: F401
from .._ops.composites.complex_parts import outer as outer
from .._ops.composites.complex_parts import positive as positive
from .._ops.composites.complex_parts import real as real
from .._ops.composites.covariance import corrcoef as corrcoef
from .._ops.composites.covariance import cov as cov
from .._ops.composites.data_dependent_sizes import argwhere as argwhere
from .._ops.composites.data_dependent_sizes import bincount as bincount
from .._ops.composites.data_dependent_sizes import histc as histc
from .._ops.composites.data_dependent_sizes import masked_select as masked_select
from .._ops.composites.data_dependent_sizes import nonzero_static as nonzero_static
from .._ops.composites.data_dependent_sizes import (
    repeat_interleave as repeat_interleave,
)
from .._ops.composites.differences import cumulative_trapezoid as cumulative_trapezoid
from .._ops.composites.differences import diff as diff
from .._ops.composites.differences import trapezoid as trapezoid
from .._ops.composites.differences import trapezoid as trapz
from .._ops.composites.einsum import einsum as einsum
from .._ops.composites.fill_methods import index_put as index_put
from .._ops.composites.fill_methods import index_put_ as index_put_
from .._ops.composites.fill_methods import scatter as scatter
from .._ops.composites.finite_differences import (
    as_strided_scatter as as_strided_scatter,
)
from .._ops.composites.finite_differences import gradient as gradient
from .._ops.composites.finite_differences import index_reduce as index_reduce
from .._ops.composites.finite_differences import lu as lu
from .._ops.composites.histogram import histogram as histogram
from .._ops.composites.histogram import histogramdd as histogramdd
from .._ops.composites.joins import broadcast_tensors as broadcast_tensors
from .._ops.composites.joins import cartesian_prod as cartesian_prod
from .._ops.composites.joins import column_stack as column_stack
from .._ops.composites.joins import combinations as combinations
from .._ops.composites.joins import dstack as dstack
from .._ops.composites.joins import hstack as hstack
from .._ops.composites.joins import meshgrid as meshgrid
from .._ops.composites.joins import row_stack as row_stack
from .._ops.composites.joins import vstack as vstack
from .._ops.composites.kron import kron as kron
from .._ops.composites.low_rank import pca_lowrank as pca_lowrank
from .._ops.composites.low_rank import svd_lowrank as svd_lowrank
from .._ops.composites.matmul import matmul as matmul
from .._ops.composites.reductions_with_forms import isin as isin
from .._ops.composites.reductions_with_forms import max as max
from .._ops.composites.reductions_with_forms import median as median
from .._ops.composites.reductions_with_forms import min as min
from .._ops.composites.reductions_with_forms import msort as msort
from .._ops.composites.reductions_with_forms import nanmedian as nanmedian
from .._ops.composites.reductions_with_forms import norm as norm
from .._ops.composites.reductions_with_forms import where as where
from .._ops.composites.shapes import atleast_1d as atleast_1d
from .._ops.composites.shapes import atleast_2d as atleast_2d
from .._ops.composites.shapes import atleast_3d as atleast_3d
from .._ops.composites.shapes import broadcast_shapes as broadcast_shapes
from .._ops.composites.shapes import dsplit as dsplit
from .._ops.composites.shapes import hsplit as hsplit
from .._ops.composites.shapes import is_nonzero as is_nonzero
from .._ops.composites.shapes import is_same_size as is_same_size
from .._ops.composites.shapes import tensor_split as tensor_split
from .._ops.composites.shapes import unravel_index as unravel_index
from .._ops.composites.shapes import vsplit as vsplit
from .._ops.composites.split import split as split
from .._ops.composites.tensordot import tensordot as tensordot
from .._ops.composites.unique import unique as unique
from .._ops.composites.unique import unique_consecutive as unique_consecutive
from .._ops.creation.dlpack import FUNCTIONS as _BUFFERS
from .._ops.creation.factory_tools import placed as _placed
from .._ops.creation.make_strided import empty_permuted as empty_permuted
from .._ops.creation.make_strided import empty_strided as empty_strided
from .._ops.creation.normal import normal as normal
from .._ops.indexing.masks import nonzero as nonzero
from .._ops.views.unsafe_split import FUNCTIONS as _UNSAFE
from .._ops.views.view_copies import COPIES as _COPIES
from .._ops.writes.resize_out import resizes_its_result as _resizes_its_result
from .._signatures.numeric_warnings import REDUCED as _REDUCED
from .._signatures.numeric_warnings import SPREAD as _SPREAD
from .._signatures.numeric_warnings import casts_first as _casts_first
from .._signatures.numeric_warnings import enough_elements as _enough_elements
from .._signatures.numeric_warnings import names_its_dim as _names_its_dim
from .._signatures.wrap_composites import parsed as _parsed
from .._signatures.wrap_composites import wrap_functions as _wrap_functions
from .._signatures.wrap_composites import wrap_methods as _wrap_methods
from .._storage.copy_warnings import FUNCTIONS as _TOLD_OF
from .._tensor import extra_methods as _extra_methods  # noqa: F401
from .._tensor.dense_answers import FUNCTIONS as _DENSE
from .._tensor.tensor import Tensor as _Tensor
from ..nn._functional.cosine import cosine_similarity as cosine_similarity
from ..nn._functional.dropout import or_input as _or_input
from ..nn._functional.norms import native_batch_norm as native_batch_norm
from ..special import polygamma as polygamma
from .foreach import FUNCTIONS as _FOREACH
from .namespace_extra import FUNCTIONS as _COMPOSED
from .tensor_facts import is_complex as is_complex
from .tensor_facts import is_floating_point as is_floating_point
from .tensor_facts import is_inference as is_inference
from .tensor_facts import is_signed as is_signed
from .tensor_facts import is_tensor as is_tensor
from .tensor_facts import numel as numel

_TABLE_FUNCTIONS = _functions.top_level()
_TABLE_FUNCTIONS.update({k: _placed(_TABLE_FUNCTIONS[k]) for k in ("tril_indices", "triu_indices")})
# What is written by hand, as imported above, goes before what follows from the table.
globals().update({name: f for name, f in _TABLE_FUNCTIONS.items() if name not in globals()})
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

# Methods that are more than an op of the table, and yet record by their arguments.
_STEPS = frozenset({
    "contiguous", "expand_as", "split", "view", "view_as",
})  # fmt: skip

_Tensor.nonzero = nonzero  # type: ignore[attr-defined]
_Tensor.equal = equal  # type: ignore[attr-defined]
_Tensor.allclose = allclose  # type: ignore[attr-defined]

_wrap_methods(_Tensor)
for _name in _STEPS:
    setattr(_Tensor, _name, _in_one_step(getattr(_Tensor, _name)))

# What PyTorch has as functions that write in place, most of them as methods too.
_INPLACE = {
    f"{name}_": _parsed(getattr(_Tensor, f"{name}_", None) or _methods.inplace_method(_TABLE[name]))
    for name in (
        "abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh "
        "as_strided asin asinh atan atanh ceil celu clamp clamp_max clamp_min clip conj_physical "
        "cos cosh deg2rad detach dropout erf erfc exp exp2 expm1 fill fix floor frac gcd i0 lcm "
        "ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu "
        "resize_as round rrelu rsqrt selu sigmoid sin sinc sinh sqrt square tan tanh threshold "
        "trunc xlogy zero"
    ).split()
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

_wrap_functions(globals(), __all__)
