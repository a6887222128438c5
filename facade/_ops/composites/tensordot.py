"""`tensordot`, as PyTorch makes it: permuted and reshaped to a product of two matrices."""

from __future__ import annotations

from math import prod
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..autocast.casts import operands
from ..writes.resize_out import write_tensordot

_TENSORDOT = TABLE["tensordot"]
_RESHAPE, _PERMUTE, _MM, _DOT, _SUM = (
    TABLE[name] for name in ("reshape", "permute", "mm", "dot", "sum")
)

Dims = tuple[int, ...]


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum of products over some dims of `a` and as many of `b`.

    Args:
      dims: how many of the last of `a` and of the first of `b`; or a list of dims for each, which
        may be a tensor of two rows.

    Raises:
      RuntimeError: for operands of different dtypes, and for lengths that differ and are not 1.

    >>> import leafax
    >>> leafax.tensordot(leafax.ones(2, 3, 4), leafax.ones(4, 3, 5), ([1, 2], [1, 0])).shape
    torch.Size([2, 5])
    """
    left, right = _lists(a, b, dims)
    for name, t in (("input", a), ("other", b), ("out", out)):
        if not isinstance(t, Handle) and not (t is None and name == "out"):
            place = {"input": " (position 1)", "other": " (position 2)"}.get(name, "")
            raise TypeError(
                f"tensordot(): argument '{name}'{place} must be Tensor, not {name_of_type(t)}"
            )
    if out is not None:
        return write_tensordot(out, tensordot(a, b, (left, right)))
    return _contracted(a, b, left, right)


@in_one_step
def _contracted(a: Any, b: Any, left: Dims, right: Dims) -> Any:
    if local.mode.autocast is not None:
        a, b = operands(_TENSORDOT, (a, b))
    _check(a, b, left, right)
    made = _product(a, b, left, right)
    sizes = (
        *(n for d, n in enumerate(a._v.shape) if d not in _wrapped(a, left)),
        *(n for d, n in enumerate(b._v.shape) if d not in _wrapped(b, right)),
    )
    return apply(_RESHAPE, made, sizes)


def _lists(a: Any, b: Any, dims: Any) -> tuple[Dims, Dims]:
    if isinstance(dims, Handle):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())  # type: ignore[attr-defined]
        if isinstance(dims, list) and len(dims) != 2:
            raise AssertionError(
                f"dims tensor must have size 2 in first dimension, got {len(dims)}"
            )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return tuple(range(-dims, 0)), tuple(range(dims))
    if not isinstance(dims, (tuple, list)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    left, right = dims
    for name, place, given in (("dims_self", 3, left), ("dims_other", 4, right)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"tensordot(): argument '{name}' (position {place}) must be tuple of ints, not "
                f"{type(given).__name__}"
            )
    return tuple(left), tuple(right)


def _wrapped(t: Any, dims: Dims) -> Dims:
    return tuple([d % len(t._v.shape) for d in dims])


def _check(a: Any, b: Any, left: Dims, right: Dims) -> None:
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a._v.dtype != b._v.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for i, j in zip(left, right, strict=True):
        n, m = a.size(i), b.size(j)
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {i} and "
                f"second has size {m} in dim {j}"
            )
    for t, dims in ((a, left), (b, right)):
        places = _wrapped(t, dims)
        for k, d in enumerate(places):
            if d in places[:k]:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")


def _product(a: Any, b: Any, left: Dims, right: Dims) -> Any:
    """Return the product over these dims, before it is given its shape."""
    x, y = a, b
    for i, j in zip(left, right, strict=True):  # lengths of 1 stand for any
        if b.shape[j] == 1:
            x = apply(_SUM, x, (i,), True, dtype=x._v.dtype)
        elif a.shape[i] == 1:
            y = apply(_SUM, y, (j,), True, dtype=y._v.dtype)
    own = [d for d in range(x.dim()) if d not in _wrapped(x, left)]
    others = [d for d in range(y.dim()) if d not in _wrapped(y, right)]
    rows, columns = (prod(t.shape[d] for d in dims) for t, dims in ((x, own), (y, others)))
    inner = prod(x.shape[d] for d in left)
    x_dims, y_dims = (*own, *left), (*right, *others)
    if rows != 1 or columns != 1:
        x = apply(_RESHAPE, apply(_PERMUTE, x, x_dims), (rows, inner))
        y = apply(_RESHAPE, apply(_PERMUTE, y, y_dims), (inner, columns))
        return apply(_MM, x, y)
    x, y = apply(_PERMUTE, x, x_dims), apply(_PERMUTE, y, y_dims)
    if x.is_contiguous() and y.is_contiguous():
        return apply(_DOT, x.flatten(), y.flatten())
    return (x.squeeze() * y.squeeze()).sum(dtype=x.dtype)
