"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.dimensions import wrap_dim
from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE

from ..._autograd.formulas.scalar_ops import over, times
from ..._dispatch.record import apply
from ..writes.write_out import write_out


def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *,
    out: Any = None,
) -> Any:  # fmt: skip
    """Return the n-th differences along a dim."""
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
    is_bool = made._v.dtype == bool
    for _ in range(min(n, made.shape[dim])):
        size = made.shape[dim] - 1
        after, before = made.narrow(dim, 1, size), made.narrow(dim, 0, size)
        made = after.logical_xor(before) if is_bool else after - before
    if out is None:
        return made
    return write_out(TABLE["logical_xor" if is_bool else "sub"], made, out, (made,))


def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the integral along a dim by the trapezoidal rule."""
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
    """Return the sums of neighbours."""
    pairs = y.shape[dim] - (y.shape[dim] > 0)
    after = y.narrow(dim, y.shape[dim] - pairs, pairs)
    return y.narrow(dim, 0, pairs) + after


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the integrals up to each position by the trapezoidal rule."""
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
