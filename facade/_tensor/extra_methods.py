"""Methods of `Tensor` that are not one op of the table, attached here."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from .._core import readonly
from .._dispatch import conj_neg_bits
from .._ops.calls import methods, removed_names
from .._ops.calls.functions import by_name
from .._ops.composites import (
    complex_parts,
    covariance,
    data_dependent_sizes,
    differences,
    fill_methods,
    finite_differences,
    histogram,
    kron,
    matmul,
    matrices,
    reductions_with_forms,
    shapes,
    split,
    unique,
)
from .._ops.creation import storage_objects
from .._ops.views import inplace_views, unsafe_split, view_copies, view_dtype, view_func
from .._ops.writes import resize_out, set_tensor
from .._signatures import numeric_warnings
from .._signatures.wrap_composites import parsed
from .._storage import copy_warnings
from . import dense_answers, python_callbacks
from . import subclass_methods as subclass_methods  # adds what derived classes inherit
from .tensor import Tensor

_METHODS = {
    shapes: (
        "view_as", "reshape_as", "expand_as", "type_as", "is_same_size", "sum_to_size",
        "is_nonzero", "hsplit", "vsplit", "dsplit", "new", "new_tensor",
        "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided", "tensor_split",
    ),
    reductions_with_forms: (
        "max", "min", "median", "nanmedian", "norm", "msort",
    ),
    differences: ("diff",),
    covariance: ("cov", "corrcoef"),
    unique: ("unique", "unique_consecutive"),
    finite_differences: ("index_reduce", "index_reduce_", "as_strided_scatter", "lu"),
    histogram: ("histogram",),
    data_dependent_sizes: (
        "masked_select", "argwhere", "bincount", "histc", "repeat_interleave", "nonzero_static",
    ),
    set_tensor: ("set_",),
    conj_neg_bits: ("is_conj", "is_neg", "resolve_conj", "resolve_neg", "_neg_view"),
    storage_objects: ("storage", "untyped_storage", "_typed_storage"),
    fill_methods: (
        "normal_", "bernoulli_", "random_", "fill_diagonal_", "index_put",
        "index_put_", "scatter", "scatter_", "resize_", "resize_as_",
    ),
}  # fmt: skip
for _module, _names in _METHODS.items():
    for _name in _names:
        setattr(Tensor, _name, getattr(_module, _name))
Tensor.view = view_dtype.view_of(Tensor.view)  # type: ignore[attr-defined]
Tensor.clone = complex_parts.clone_of(Tensor.clone)  # type: ignore[attr-defined]
Tensor.conj = complex_parts.conj  # type: ignore[attr-defined]
Tensor.adjoint = complex_parts.adjoint  # type: ignore[attr-defined]
for _name, _fn in unsafe_split.FUNCTIONS.items():
    setattr(Tensor, _name, parsed(_fn, _name, method=True))
Tensor.split = split.method_of(Tensor.split)  # type: ignore[attr-defined]
Tensor.cross = numeric_warnings.names_its_dim(Tensor.cross)  # type: ignore[attr-defined]
Tensor.ldexp = resize_out.resizes_its_result(Tensor.ldexp)  # type: ignore[attr-defined]
for _name in ("var", "std"):
    setattr(Tensor, _name, numeric_warnings.enough_elements(_name, getattr(Tensor, _name)))
for _name in numeric_warnings.REDUCED:
    setattr(Tensor, _name, numeric_warnings.casts_first(getattr(Tensor, _name)))
for _name in ("stft", "istft"):
    setattr(Tensor, _name, copy_warnings.without_window(_name, getattr(Tensor, _name)))
Tensor.conj_physical = complex_parts.conj_physical  # type: ignore[attr-defined]
for _name in ("positive", "__pos__"):
    setattr(Tensor, _name, complex_parts.positive)
matmul.install(Tensor)
Tensor.kron = kron.kron_method  # type: ignore[attr-defined]
Tensor.outer = complex_parts.outer  # type: ignore[attr-defined]
Tensor.ger = by_name(complex_parts.outer, TABLE["outer"], "ger", method=True)  # type: ignore[attr-defined]
Tensor.__rtruediv__ = complex_parts.rtruediv  # type: ignore[attr-defined]
for _name, _fn in inplace_views.methods().items():
    setattr(Tensor, _name, _fn)
Tensor.where = reductions_with_forms.method_where  # type: ignore[attr-defined]
for _home in (dense_answers.METHODS, python_callbacks.METHODS, removed_names.METHODS):
    for _name, _fn in _home.items():
        setattr(Tensor, _name, _fn)
Tensor.narrow_copy = view_copies.COPIES["narrow_copy"]  # type: ignore[attr-defined]
Tensor.orgqr = matrices.orgqr  # type: ignore[attr-defined]
Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]
for _name, _same in (
    ("__long__", "__int__"), ("__nonzero__", "__bool__"), ("__div__", "__truediv__"),
    ("__rdiv__", "__rtruediv__"), ("__idiv__", "__itruediv__"), ("const_data_ptr", "data_ptr"),
):  # fmt: skip
    setattr(Tensor, _name, getattr(Tensor, _same))

Tensor._view_func = view_func.view_func  # type: ignore[attr-defined]
Tensor._view_func_unsafe = view_func.view_func_unsafe  # type: ignore[attr-defined]
Tensor._rev_view_func_unsafe = view_func.rev_view_func_unsafe  # type: ignore[attr-defined]
for _name in ("T", "mT", "H", "mH"):
    setattr(Tensor, _name, property(getattr(complex_parts, _name)))


def _set_part(name: str) -> Any:
    def put(self: Any, value: Any) -> None:
        getattr(self, name).copy_(value)

    return put


Tensor.real = property(complex_parts.real, _set_part("real"))  # type: ignore[attr-defined]
Tensor.imag = property(complex_parts.imag, _set_part("imag"))  # type: ignore[attr-defined]
for _name in ("square", "multiply"):
    if not hasattr(Tensor, _name + "_"):
        _op = TABLE[_name]
        _method = methods.inplace_method(_op)
        setattr(Tensor, _name + "_", by_name(_method, _op, _name, "_", True))

for _name in removed_names.DEPRECATED:
    setattr(Tensor, _name, removed_names.warned(_name, getattr(Tensor, _name)))
readonly.protect(Tensor)
