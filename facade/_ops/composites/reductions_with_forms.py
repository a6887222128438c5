"""Reductions and searches whose Python signature has more than one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.ops.shape.dimensions import wrap_dim
from leafax.functional.program.dtypes import default_float, scalar_name
from leafax.functional.program.op import TABLE, Op

from ..._autograd.formulas.scalar_ops import over, times
from ..._core.dtypes import of
from ..._core.handle import Handle
from ..._core.vmap_checks import refuse_in_vmap
from ..._core.warn_once import warn, warn_once
from ..._signatures.check_arguments import refuse_wide
from ..._signatures.wrap_composites import parsed
from ..._tracing.record import apply
from ..calls.functions import check_out, write_out
from ..indexing.masks import nonzero
from ..writes.check_kind import check_tensor


def _extremum(name: str, pairwise: str) -> Callable[..., Any]:
    whole, along, pair = TABLE[name], TABLE[name + ".dim"], TABLE[pairwise]

    def fn(
        input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None,
        keepdims: bool | None = None, out: Any = None,
    ) -> Any:  # fmt: skip
        dim = axis if dim is None else dim
        keepdim = keepdim if keepdims is None else keepdims
        if isinstance(dim, Handle):
            dim, other = None, dim
        if other is not None:
            made, op = apply(pair, input, other), pair
        elif dim is None:
            made, op = apply(whole, input), whole
        else:
            made, op = apply(along, input, dim, bool(keepdim)), along
        if out is None:
            return made
        return write_out(op, made, out, () if op is whole else (input, other))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = (
        f"The {name}imum of all elements; with `dim` a pair of values and indices; with another\n"
        f"tensor the elementwise {pairwise}."
    )
    return fn


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")


def _middle(name: str) -> Callable[..., Any]:
    whole, along = TABLE[name], TABLE[name + ".dim"]

    def fn(
        input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, out: Any = None
    ) -> Any:
        dim = axis if dim is None else dim
        if dim is None:
            made, op = apply(whole, input), whole
        else:
            made, op = apply(along, input, dim, bool(keepdim)), along
        return made if out is None else write_out(op, made, out)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = "The lower median of all elements; with `dim` a pair of values and indices."
    return fn


median, nanmedian = _middle("median"), _middle("nanmedian")


_MSORT = Op(lambda x: x, name="msort")


def msort(input: Any, *, out: Any = None) -> Any:
    """The elements sorted along the first dim."""
    made = input.sort(0)[0]
    if out is None:
        return made
    check_tensor(_MSORT, out)
    return write_out(TABLE["sort"], made, out)


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The p-norm of all elements or along dims; "fro" is 2, "nuc" the sum of singular values."""
    dim = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    if p != "nuc":
        _need_dims(dim)
    np_dtype = None if dtype is None else dtype.np
    p = p if p is None or isinstance(p, (str, complex)) else float(p)
    if p == "nuc":
        dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim
        made = apply(TABLE["linalg.matrix_norm"], input, "nuc", dims, keepdim, np_dtype)
    else:
        made = apply(TABLE["norm"], input, p, dim, keepdim, np_dtype)
    return made if out is None else write_out(TABLE["linalg.vector_norm"], made, out)


def _need_dims(dim: Any) -> None:
    """Raise in the words of the function that PyTorch's `norm` calls, unless these are dims."""
    of = "linalg_vector_norm(): argument 'dim' (position 3) must be tuple of ints, "
    if isinstance(dim, str):
        raise TypeError(of + "not str")
    first = dim[0] if isinstance(dim, tuple) and dim else dim
    if isinstance(first, bool):
        raise TypeError(of + "but found element of type bool at pos 0")


def where(
    condition: Any, input: Any = None, other: Any = None, *, out: Any = None, **kw: Any
) -> Any:
    """`input` where the condition holds, else `other`; alone, where the condition holds.

    The form with one argument runs the program and returns one index tensor a dimension.
    """
    input = kw.pop("self", input)
    if kw:
        raise TypeError(f"where() got an unexpected keyword argument '{next(iter(kw))}'")
    if input is None and other is None:
        refuse_in_vmap("where", condition)
        return nonzero(condition, as_tuple=True)
    if out is not None:
        check_out(TABLE["where"], out, (condition, input, other))
    if isinstance(condition, Handle) and condition._v.dtype == np.uint8:
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead."
        )
    for chosen in (input, other):
        refuse_wide("Number", chosen)
    made = apply(TABLE["where"], condition, input, other)
    return made if out is None else write_out(TABLE["where"], made, out, (condition, input, other))


def method_where(self: Any, condition: Any, other: Any) -> Any:
    """This tensor where the condition holds, else `other`."""
    return where(condition, self, other)


method_where.__name__ = "where"


_ISIN = Op(lambda x: x, name="isin", differentiable=False)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
    out: Any = None,
) -> Any:  # fmt: skip
    """Whether each element is among `test_elements`."""
    for x in (elements, test_elements):
        kind = np.dtype(type(x)) if not isinstance(x, Handle) else x._v.dtype  # type: ignore[attr-defined]
        if kind.kind in "bc":
            name = scalar_name(kind)
            raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
    if not isinstance(elements, Handle):  # compared as a number: 2.5 is no integer
        found = (test_elements.detach() == elements).any()
    elif isinstance(test_elements, Handle):
        elements = elements.detach()
        found = (elements.unsqueeze(-1) == test_elements.detach().flatten()).any(-1)
    else:
        found = elements.detach() == test_elements
    found = found.logical_not() if invert else found
    return found if out is None else write_out(_ISIN, found, out)


def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *,
    out: Any = None,
) -> Any:  # fmt: skip
    """The n-th differences along a dim."""
    if input.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        made = input.new_zeros(input.shape).copy_(input)
        if out is not None and out.dtype != made.dtype:
            names = (scalar_name(x._v.dtype) for x in (made, out))
            raise RuntimeError("expected scalar_type {} but found {}".format(*names))
        return made if out is None else write_out(TABLE["sub"], made, out, (made,))
    parts = [x for x in (prepend, input, append) if x is not None]
    if any(x.dim() != input.dim() for x in parts):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    dim = wrap_dim(dim, input.dim())
    for x in parts:
        for d, (n_given, n_own) in enumerate(zip(x.shape, input.shape, strict=True)):
            if d != dim and n_given != n_own:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({d}) = {n_own}, but got "
                    f"tensor.size({d}) = {n_given}"
                )
    made = apply(TABLE["cat"], tuple(parts), dim) if len(parts) > 1 else input
    for _ in range(n if n <= made.shape[dim] else made.shape[dim]):
        size = made.shape[dim] - 1
        after, before = made.narrow(dim, 1, size), made.narrow(dim, 0, size)
        made = after.logical_xor(before) if str(made.dtype) == "torch.bool" else after - before
    if out is None:
        return made
    kind = "logical_xor" if made._v.dtype == bool else "sub"
    return write_out(TABLE[kind], made, out, (made,))


def _weights(name: str, x: Any, count: int, what: str, kinds: str) -> Any:
    """Weights that `cov` takes; whether they are negative only a run can tell."""
    if x is None:
        return None
    if x.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{x.dim()} dimensions"
        )
    if x._v.dtype.kind not in kinds:
        raise RuntimeError(
            f"cov(): expected {name} to have {what} dtype but got {name} with "
            f"{scalar_name(x._v.dtype)} dtype"
        )
    if x.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {x.numel()} != {count}"
        )
    return apply(TABLE["_cov_weights"], x, name)


@parsed
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables (rows) from observations (columns)."""
    if input.dim() > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    if input._v.dtype == np.dtype(bool):
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.view(1, -1) if input.dim() < 2 else input
    fweights = _weights("fweights", fweights, x.shape[1], "integral", "iu")
    aweights = _weights("aweights", aweights, x.shape[1], "floating point", "fV")
    if x._v.dtype.kind in "iu":
        x = x.to(of(default_float()) if aweights is None else aweights.dtype)
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    count: Any = x.shape[1]
    total: Any = count if weights is None else weights.sum()
    if weights is None:
        mean = (x.sum(1) / count).unsqueeze(1)
    else:
        mean = ((x * weights).sum(1) / total).unsqueeze(1)
    if aweights is not None and correction:
        factor: Any = total - correction * (weights * aweights).sum() / total
    else:
        factor = total - correction
    if not isinstance(factor, Handle) and factor <= 0:  # weights would have to be observed
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations."
        )
    factor = factor.clamp(min=0) if isinstance(factor, Handle) else _larger(factor, 0)
    x = x - mean
    y = x if weights is None else x * weights
    return (y.mm(x.t().conj()) / factor).squeeze()


def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@parsed
def corrcoef(input: Any) -> Any:
    """The matrix of correlation coefficients of variables (rows)."""
    if input.dim() > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    d = c.diagonal()
    d = (d.real if d.is_complex() else d).sqrt()
    c = c / d.view(-1, 1) / d.view(1, -1)
    if not c.is_complex():
        return c.clip(-1, 1)
    return apply(TABLE["complex"], c.real.clip(-1, 1), c.imag.clip(-1, 1))


def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along a dim by the trapezoidal rule."""
    if not y.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if y.size(dim) == 0:
        return y.sum(dim).to(y.dtype).detach()
    _need_numbers("trapezoid", y, x, dx)
    if x is None:
        # The right operand first, as PyTorch does, so backward comes to it last.
        last = y.select(dim, -1)
        half = times(y.select(dim, 0) + last, 0.5)
        return times(y.sum(dim) - half, 1 if dx is None else dx)
    steps = _steps("trapezoid", y, x, dim)
    return over((_pairs(y, dim) * steps).sum(dim), 2.0)


def _need_numbers(name: str, y: Any, x: Any, dx: Any) -> None:
    if any(t is not None and t._v.dtype == bool for t in (y, x)):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _pairs(y: Any, dim: int) -> Any:
    """The sums of neighbours."""
    pairs = y.shape[dim] - (y.shape[dim] > 0)
    after = y.narrow(dim, y.shape[dim] - pairs, pairs)
    return y.narrow(dim, 0, pairs) + after


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integrals up to each position by the trapezoidal rule."""
    y.size(dim)  # or it is out of range
    _need_numbers("cumulative_trapezoid", y, x, dx)
    if x is None:
        return times(_pairs(y, dim), (1 if dx is None else dx) / 2.0).cumsum(dim)
    steps = _steps("cumulative_trapezoid", y, x, dim)
    return over((_pairs(y, dim) * steps).cumsum(dim), 2.0)


def _steps(name: str, y: Any, x: Any, dim: int) -> Any:
    if x.dim() == 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.dim()
        shape[dim] = x.shape[0]
        x = x.view(shape)
    elif x.dim() < y.dim():
        x = x.view((1,) * (y.dim() - x.dim()) + tuple(x.shape))
    return diff(x, dim=dim)
