"""Functions and methods of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._core.handle import Handle
from .._ops.composites.reductions_with_forms import isin
from .._ops.creation.factories import zeros
from .._tensor.tensor import Tensor
from .make import (
    coalesce,
    dense_cat,
    empty,
    flat_places,
    sparse_mask,
    to_dense,
    to_sparse,
    to_sparse_csc,
    to_sparse_csr,
)
from .printing import show
from .products import PRODUCTS
from .shapes import SHAPES
from .tensor import OPS, CooTensor, SparseTensor

_ZERO_STAYS_ZERO = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf "
    "isposinf log1p neg negative rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh "
    "trunc"
).split()
_CASTS = "float double half bfloat16 long int short char byte bool cfloat cdouble".split()


def _is_number(x: Any) -> bool:
    return not isinstance(x, Handle) or not isinstance(x, SparseTensor) and not x.dim()  # type: ignore[attr-defined]


def _of_values(name: str) -> Callable[..., Any]:
    def op(x: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("inplace", None)
        held = coalesce(x) if isinstance(x, CooTensor) else x
        return held._with(getattr(held._held, name)(*args, **kwargs))

    return op


def _linear(name: str) -> Callable[..., Any]:
    """Return what does the same to the values, coalesced or not."""

    def op(x: Any, *args: Any, **kwargs: Any) -> Any:
        return x._with(getattr(x._held, name)(*args, **kwargs))

    return op


def _mul(x: Any, other: Any) -> Any:
    if not isinstance(x, SparseTensor):
        return _mul(other, x)
    if _is_number(other):
        return x._with(x._held * other)
    coords = coalesce(x._coo())
    if isinstance(other, SparseTensor):
        second = coalesce(other._coo())
        both = isin(flat_places(coords), flat_places(second)).nonzero().squeeze(1)
        places = coords._places.index_select(1, both)
        theirs = to_dense(second)[tuple(places.unbind(0))]
        return CooTensor.make(places, coords._held.index_select(0, both) * theirs, x.shape, True)
    places = tuple(coords._places.unbind(0))
    made = coords._with(coords._held * other.expand(x.shape)[places])
    return like(made, x)


def _div(x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if not isinstance(x, SparseTensor) or isinstance(other, SparseTensor):
        raise RuntimeError("Sparse division requires a dense or scalar divisor")
    if _is_number(other):
        return x._with(x._held.div(other, rounding_mode=rounding_mode))
    coords = coalesce(x._coo())
    places = tuple(coords._places.unbind(0))
    divisor = other.expand(x.shape)[places]
    return coords._with(coords._held.div(divisor, rounding_mode=rounding_mode))


def _pow(x: Any, exponent: Any) -> Any:
    if isinstance(exponent, (int, float)) and exponent == 0:
        raise RuntimeError(
            "cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    return _of_values("pow")(x, exponent)


def _add(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(other, SparseTensor):
        if isinstance(other, Handle) and isinstance(x, SparseTensor):
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        raise RuntimeError("a number cannot be added to a sparse tensor: call to_dense()")
    if not isinstance(x, SparseTensor):
        return x.add(to_dense(other), alpha=alpha)
    if tuple(x.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(x.shape)} != "
            f"{list(other.shape)}"
        )
    first, second = x._coo(), other._coo()
    places = dense_cat([first._places, second._places], 1)
    values = dense_cat([first._held, (second._held * alpha).to(first.dtype)], 0)
    made = CooTensor.make(places, values, x.shape)
    done = coalesce(made) if first._coalesced and second._coalesced else made
    return like(done, x)


def like(made: CooTensor, x: Any) -> Any:
    """Return a result in the layout of an operand."""
    return made if isinstance(x, CooTensor) else to_sparse(made, layout=x.layout)


def _sub(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add(x, other, alpha=-alpha)


def sum_of(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum over dims: dense if it is over all sparse ones."""
    coords = x._coo()
    if dtype is not None:
        coords = coords._with(coords._held.to(dtype))
    if dim is None or dim == ():
        return coords._held.sum()
    dims = sorted({d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)})
    count = coords.sparse_dim()
    dense = [d - count + 1 for d in dims if d >= count]
    values = coords._held.sum(dense) if dense else coords._held
    kept = [d for d in range(count) if d not in dims]
    if not kept:
        return values.sum(0)
    shape = [n for d, n in enumerate(x.shape) if d not in dims]
    places = coords._places[kept]
    return coalesce(CooTensor.make(places, values, shape))


def softmax(x: Any, dim: int, *, dtype: Any = None, log: bool = False) -> Any:
    """Return the softmax of a sparse tensor's elements along a sparse dim."""
    coords = coalesce(x._coo())
    values = coords._held if dtype is None else coords._held.to(dtype)
    dim %= x.dim()
    if dim >= coords.sparse_dim():
        axis = dim - coords.sparse_dim() + 1
        return coords._with(values.log_softmax(axis) if log else values.softmax(axis))
    rest = [d for d in range(coords.sparse_dim()) if d != dim]
    group = flat_places(coords, rest)
    count = math.prod(x.shape[d] for d in rest)
    blank = zeros(count, *values.shape[1:], dtype=values.dtype, device=values.device)
    places = group.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    low = (blank - float("inf")).scatter_reduce(0, places, values.detach(), "amax")
    shifted = values - low.index_select(0, group)
    total = blank.index_add(0, group, shifted.exp()).index_select(0, group)
    return coords._with(shifted - total.log() if log else shifted.exp() / total)


def _norm(x: Any, p: Any = "fro", dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dim is not None:
        raise NotImplementedError("norms of sparse tensors are over all elements here")
    return (coalesce(x) if isinstance(x, CooTensor) else x)._held.norm(p)


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    kwargs.pop("copy", None)
    kwargs.pop("non_blocking", None)
    held = x._held.to(*args, **kwargs)
    return x if held is x._held else x._with(held)


def _type(x: Any, dtype: Any = None) -> Any:
    if dtype is None:
        return x._held.type().replace("torch.", "torch.sparse.")
    return x._with(x._held.type(dtype))


def _detach(x: Any) -> Any:
    return x._with(x._held.detach())


def _deepcopy(x: Any, memo: Any) -> Any:
    made = x._with(x._held.detach().clone().requires_grad_(x.requires_grad))
    memo[id(x)] = made
    return made


def _zero_(x: Any) -> Any:
    blank = empty(x.shape, dtype=x.dtype)
    x.__dict__.update(_places=blank._places, _held=blank._held, _coalesced=True)
    return x


def _written(name: str) -> Callable[..., Any]:
    def op(x: Any, *args: Any, **kwargs: Any) -> Any:
        made = OPS[name](x, *args, **kwargs)
        x.__dict__.update(made.__dict__)
        return x

    return op


def _backward(x: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    x._held.backward(None if gradient is None else gradient._held, *args, **kwargs)


OPS.update({name: _of_values(name) for name in _ZERO_STAYS_ZERO})
OPS.update({name: _linear(name) for name in (*_CASTS, "clone", "cpu", "cuda")})
OPS.update({
    "mul": _mul, "multiply": _mul, "div": _div, "divide": _div, "true_divide": _div, "pow": _pow,
    "__pow__": _pow, "add": _add, "sub": _sub, "subtract": _sub, "sum": sum_of, "norm": _norm,
    "to": _to, "detach": _detach, "__deepcopy__": _deepcopy, "zero_": _zero_,
    "any": lambda x: x._held.any(), "is_nonzero": lambda x: bool(to_dense(x)),
    "zeros_like": lambda x, **options: empty(x.shape, x.dtype), "backward": _backward,
    "to_dense": to_dense, "to_sparse": to_sparse, "to_sparse_coo": to_sparse,
    "to_sparse_csr": to_sparse_csr, "to_sparse_csc": to_sparse_csc, "sparse_mask": sparse_mask,
    "coalesce": coalesce,
    "__repr__": show, "is_tensor": lambda x: True, "numel": lambda x: x.numel(),
    "softmax": softmax, "log_softmax": lambda x, dim, **k: softmax(x, dim, log=True, **k),
    "type": _type, "retain_grad": lambda x: x._held.retain_grad(),
    "is_floating_point": lambda x: x.is_floating_point(), "is_complex": lambda x: x.is_complex(),
})  # fmt: skip
OPS.update(PRODUCTS)
OPS.update(SHAPES)
OPS.update({f"{name}_": _written(name) for name in ("mul", "div", "add", "sub", "neg", "abs")})
OPS["copy_"] = lambda x, other, non_blocking=False: x.__dict__.update(other.__dict__) or x

_OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__pow__": "pow",
    "__imul__": "mul_", "__itruediv__": "div_", "__iadd__": "add_", "__isub__": "sub_",
}  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return OPS[name](self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in OPS:
    if hasattr(Tensor, _name) and _name not in vars(SparseTensor):
        setattr(SparseTensor, _name, _method(_name))
for _name, _op in _OPERATORS.items():
    setattr(SparseTensor, _name, _method(_op))
SparseTensor.data = property(_detach)  # type: ignore[assignment]
SparseTensor.T = property(OPS["t"])  # type: ignore[attr-defined]
