"""Methods of `Tensor` that are not one op of the table, attached here."""

from __future__ import annotations

from typing import Any

from leafax.functional import TABLE

from . import (
    _bits,
    _cautions,
    _composites,
    _copies,
    _counting,
    _dense,
    _elements,
    _fillers,
    _histogram,
    _inplace_views,
    _kron,
    _matrices,
    _numeric,
    _performance,
    _products,
    _readonly,
    _reduce,
    _removed,
    _set,
    _shapes,
    _split,
    _storages,
    _table_methods,
    _unsafe,
    _view_dtype,
    _view_func,
)
from ._arguments import parsed
from ._table import by_name
from ._tensor import Tensor

_METHODS = {
    _shapes: (
        "view_as", "reshape_as", "expand_as", "type_as", "is_same_size", "sum_to_size",
        "is_nonzero", "hsplit", "vsplit", "dsplit", "new", "new_tensor",
        "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided", "tensor_split",
    ),
    _reduce: (
        "max", "min", "median", "nanmedian", "norm", "diff", "cov", "corrcoef", "msort",
    ),
    _numeric: ("index_reduce", "index_reduce_", "as_strided_scatter", "lu"),
    _histogram: ("histogram",),
    _counting: (
        "masked_select", "argwhere", "unique", "unique_consecutive", "bincount", "histc",
        "repeat_interleave", "nonzero_static",
    ),
    _set: ("set_",),
    _bits: ("is_conj", "is_neg", "resolve_conj", "resolve_neg", "_neg_view"),
    _storages: ("storage", "untyped_storage", "_typed_storage"),
    _fillers: (
        "normal_", "bernoulli_", "random_", "fill_diagonal_", "index_put",
        "index_put_", "scatter", "scatter_", "resize_", "resize_as_",
    ),
}  # fmt: skip
for _module, _names in _METHODS.items():
    for _name in _names:
        if hasattr(_module, _name):
            setattr(Tensor, _name, getattr(_module, _name))
Tensor.view = _view_dtype.view_of(Tensor.view)  # type: ignore[attr-defined]
Tensor.clone = _composites.clone_of(Tensor.clone)  # type: ignore[attr-defined]
Tensor.conj = _composites.conj  # type: ignore[attr-defined]
Tensor.adjoint = _composites.adjoint  # type: ignore[attr-defined]
for _name, _fn in _unsafe.FUNCTIONS.items():
    setattr(Tensor, _name, parsed(_fn, _name, method=True))
Tensor.split = _split.method_of(Tensor.split)  # type: ignore[attr-defined]
Tensor.cross = _cautions.names_its_dim(Tensor.cross)  # type: ignore[attr-defined]
Tensor.ldexp = _cautions.resizes_its_result(Tensor.ldexp)  # type: ignore[attr-defined]
for _name in ("var", "std"):
    setattr(Tensor, _name, _cautions.enough_elements(_name, getattr(Tensor, _name)))
for _name in _cautions.REDUCED:
    setattr(Tensor, _name, _cautions.casts_first(getattr(Tensor, _name)))
for _name in ("stft", "istft"):
    setattr(Tensor, _name, _performance.without_window(_name, getattr(Tensor, _name)))
Tensor.conj_physical = _composites.conj_physical  # type: ignore[attr-defined]
for _name in ("positive", "__pos__"):
    setattr(Tensor, _name, _composites.positive)
_products.install(Tensor)
Tensor.kron = _kron.kron_method  # type: ignore[attr-defined]
Tensor.outer = _composites.outer  # type: ignore[attr-defined]
Tensor.ger = by_name(_composites.outer, TABLE["outer"], "ger", method=True)  # type: ignore[attr-defined]
Tensor.__rtruediv__ = _composites.rtruediv  # type: ignore[attr-defined]
for _name, _fn in _inplace_views.methods().items():
    setattr(Tensor, _name, _fn)
Tensor.where = _reduce.method_where  # type: ignore[attr-defined]


for _home in (_dense.METHODS, _elements.METHODS, _removed.METHODS):
    for _name, _fn in _home.items():
        setattr(Tensor, _name, _fn)
Tensor.narrow_copy = _copies.COPIES["narrow_copy"]  # type: ignore[attr-defined]
Tensor.orgqr = _matrices.orgqr  # type: ignore[attr-defined]
Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]
for _name, _same in (
    ("__long__", "__int__"), ("__nonzero__", "__bool__"), ("__div__", "__truediv__"),
    ("__rdiv__", "__rtruediv__"), ("__idiv__", "__itruediv__"), ("const_data_ptr", "data_ptr"),
):  # fmt: skip
    setattr(Tensor, _name, getattr(Tensor, _same))

Tensor._view_func = _view_func.view_func  # type: ignore[attr-defined]
Tensor._view_func_unsafe = _view_func.view_func_unsafe  # type: ignore[attr-defined]
Tensor._rev_view_func_unsafe = _view_func.rev_view_func_unsafe  # type: ignore[attr-defined]


for _name in ("T", "mT", "H", "mH"):
    setattr(Tensor, _name, property(getattr(_composites, _name)))


def _set_part(name: str) -> Any:
    def put(self: Any, value: Any) -> None:
        getattr(self, name).copy_(value)

    return put


Tensor.real = property(_composites.real, _set_part("real"))  # type: ignore[attr-defined]
Tensor.imag = property(_composites.imag, _set_part("imag"))  # type: ignore[attr-defined]
for _name in ("square", "multiply"):
    if not hasattr(Tensor, _name + "_"):
        _op = TABLE[_name]
        _method = _table_methods.inplace_method(_op)
        setattr(Tensor, _name + "_", by_name(_method, _op, _name, "_", True))

for _name in _removed.DEPRECATED:
    setattr(Tensor, _name, _removed.warned(_name, getattr(Tensor, _name)))
_readonly.protect(Tensor)
