"""Finite differences and writes that are compositions of other ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Number
from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.ops.shape.slice_writes import need_slice_shape, need_slices
from leafax.functional.ops.shape.strides import Layout
from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE, Fault, Op

from ..._autograd.formulas.scalar_ops import over, times
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.vmap_checks import refuse_in_vmap
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..._signatures.table import known_signatures
from ..._storage.as_strided_outside import places
from ..._storage.lay_out import lay_out
from ..._storage.strides import layout
from ..._storage.write import repeats
from ..writes.apply_inplace import apply_inplace, check_inplace
from ..writes.write_out import write_out

_SCATTER = TABLE["scatter_reduce"]


def _index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    if index.size and (kernel := _unwritten_kernel(input.dtype.kind, reduce, include_self)):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")
    return _SCATTER.fn(input, dim, index, source, reduce, include_self)


def _unwritten_kernel(kind: str, reduce: str, include_self: bool) -> str | None:
    """Return the first of PyTorch's kernels for an `index_reduce` that does not take this kind."""
    if kind not in "bc":
        return None
    if not include_self:
        return "index_reduce_func_exclude_input_init"
    if kind == "b":
        return "div_floor_cpu" if reduce == "mean" else None
    return {"amax": "maximum_cpu", "amin": "minimum_cpu"}.get(reduce)


def _check_slices(input: Any, dim: int, index: Any, *rest: Any) -> list[Fault]:
    size = input.shape[dim] if input.ndim else 1
    return [Fault((index < 0) | (index >= size), IndexError, "index out of range in self")]


_INDEX_REDUCE = Op(
    _index_reduce, name="index_reduce", inplace=True, check=_check_slices, residuals=True,
    saves={"self": "*", "index": "*", "source": "*", "result": "*"},
)  # fmt: skip


def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True,
    out: Any = None,
) -> Any:  # fmt: skip
    """Return a copy whose slices at `index` are reduced with those of `source`."""
    at = _places(input, dim, index, source, reduce)
    with _in_beta():
        made = apply(_INDEX_REDUCE, input, dim, at, source, reduce, include_self)
    return made if out is None else write_out(_INDEX_REDUCE, made, out, (input, index, source))


def index_reduce_(
    self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Apply `index_reduce` in place."""
    check_inplace(self)
    at = _places(self, dim, index, source, reduce)
    with _in_beta():
        return apply_inplace(_INDEX_REDUCE, self, dim, at, source, reduce, include_self)


_BETA = "index_reduce() is in beta and the API may change at any time."


@contextmanager
def _in_beta() -> Iterator[None]:
    """Warn as PyTorch does: once memory was looked at, and before a kernel refuses a dtype."""
    try:
        yield
    except NotImplementedError as error:
        if str(error).startswith('"'):  # a kernel's name; autograd refuses before it
            warn_once(_BETA)
        raise
    warn_once(_BETA)


def _places(input: Any, dim: int, index: Any, source: Any, reduce: str) -> Any:
    """Return the index of each element of `source`, as `scatter` wants it."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    if input._v.dtype.kind in "bc" and input.dim() < 2:
        kind = scalar_name(input._v.dtype)
        warn_once(_BETA)
        raise NotImplementedError(f"\"index_func_\" not implemented for '{kind}'")
    known = [jax.ShapeDtypeStruct(tuple(x.shape), x._v.dtype) for x in (input, index, source)]
    dim = need_slices("index_reduce_", known[0], dim, *known[1:])
    shape = [-1 if axis == dim else 1 for axis in range(source.dim())]
    return index.view(shape).expand(source.shape).long()


def _put_strided(
    input: Any, src: Any, size: Any, stride: Any, offset: int, own: Any, begin: int
) -> Any:
    """`input`, whose memory is laid out as `own` says from `begin` on, written to by strides."""
    mine = places(Layout(tuple(input.shape), own, begin))
    theirs = places(Layout(size, stride, offset))
    room = max((int(at.max()) + 1 for at in (mine, theirs) if at.size), default=0)
    memory = jnp.zeros(room, input.dtype).at[mine].set(input)
    return memory.at[theirs].set(src.astype(input.dtype))[mine]


_AS_STRIDED_SCATTER = Op(
    _put_strided, name="as_strided_scatter", backward="AsStridedScatterBackward0"
)


def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """Return a copy whose elements at these strides are those of `src`."""
    refuse_in_vmap("as_strided_scatter", input, src)
    size, stride = tuple(size), tuple(stride)
    with no_grad():
        # The memory is copied as it is, unless elements share some: then what they are is.
        memory = input.clone() if repeats(input) else input.detach()
        have = layout(memory)
        offset = int(have.offset) if storage_offset is None else storage_offset
        part = memory.as_strided(size, stride, offset)
    need_slice_shape(src, tuple(part.shape))
    begin = int(have.offset)
    made = apply(_AS_STRIDED_SCATTER, input, src, size, stride, offset, have.strides, begin)
    return lay_out(made, have.strides)


def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> Any:  # noqa: N803
    """Compute LU factors in one matrix and the rows swapped, by an old name."""
    made = apply(TABLE["linalg.lu_factor_ex"], A, pivot=pivot)
    return tuple(made) if get_infos else tuple(made)[:2]


def _differences(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    """Compute central differences inside and one-sided ones at the two ends.

    Right operands come first, as in PyTorch, so backward comes to them last.
    """
    n = x.shape[dim]

    def at(start: int, length: int = 1) -> Any:
        return x.narrow(dim, start, length)

    def apart(first: int, second: int, length: int = 1) -> Any:
        before = at(first, length)
        return at(second, length) - before

    def weighed(start: int, weights: tuple[Any, ...], length: int = 1) -> Any:
        third, second, first = (
            weight * at(start + k, length)
            if isinstance(weight, Handle)
            else times(at(start + k, length), weight)
            for k, weight in reversed([*enumerate(weights)])
        )
        return first + second + third

    if isinstance(step, Handle):
        h = step[1:] - step[:-1]  # type: ignore[index]
        shape = [1] * x.dim()
        shape[dim] = -1
        first, second = h[:-1].view(shape), h[1:].view(shape)
        a = -second / (first * (first + second))
        b = (second - first) / (first * second)
        c = first / (second * (first + second))
        inner = weighed(0, (a, b, c), n - 2)
        if edge_order == 1:
            start, end = apart(0, 1) / h[0], apart(n - 2, n - 1) / h[-1]
        else:
            d1, d2 = h[0], h[1]
            start = weighed(0, (
                -(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2),
                -d1 / (d2 * (d1 + d2)),
            ))  # fmt: skip
            d1, d2 = h[-2], h[-1]
            end = weighed(n - 3, (
                d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2),
                (2.0 * d2 + d1) / (d2 * (d1 + d2)),
            ))  # fmt: skip
        return apply(TABLE["cat"], (start, inner, end), dim)
    inner = over(apart(0, 2, n - 2), step)
    if edge_order == 1:
        start, end = over(apart(0, 1), step), over(apart(n - 2, n - 1), step)
    else:
        rest = times(at(2), 0.5)
        double = times(at(1), 2)
        start = over(times(at(0), -1.5) + double - rest, step)
        rest = times(at(n - 1), 1.5)
        double = times(at(n - 2), 2)
        end = over(times(at(n - 3), 0.5) - double + rest, step)
    return apply(TABLE["cat"], (start, over(inner, 2), end), dim)


def _check_steps(spacing: Any, steps: list[Any]) -> None:
    """Numbers, also in tensors without dims, or a list of coordinates: all of one kind."""
    if not isinstance(spacing, (list, tuple)):
        if isinstance(spacing, Handle) and spacing.dim() == 0:  # type: ignore[attr-defined]
            steps[:] = [spacing.item()] * len(steps)  # type: ignore[attr-defined]
        elif not isinstance(spacing, Number):
            lines = "".join(f" * ({line})\n" for line in known_signatures("gradient"))
            raise TypeError(
                "gradient() received an invalid combination of arguments - got (Tensor, spacing="
                f"{name_of_type(spacing)}), but expected one of:\n{lines}"
            )
        return
    if all(isinstance(s, Number) for s in steps):  # NumPy's among them
        return
    for k, s in enumerate(steps):
        if not isinstance(s, Handle):
            raise TypeError(
                f"expected Tensor as element {k} in argument 1, but got {name_of_type(s)}"
            )
        if s.dim() != 1:  # type: ignore[attr-defined]
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got "
                f"an element with {s.dim()} dimensions!"  # type: ignore[attr-defined]
            )


def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Any, ...]:
    """Estimate the derivative along dims from values at points `spacing` apart."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else [*dim]
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    _check_steps(spacing, steps)
    if len(steps) != len(dims) and dim is not None:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            "arguments to have the same length, but got a spacing argument of length "
            f"{len(steps)} and a dim argument of length {len(dims)}."
        )
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {len(dims)}', since dim argument was not given, but got a "
            f"list of length {len(steps)}"
        )
    rank = input.dim()
    for d in dims:
        if not -rank <= d < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
                f"got {d})"
            )
    for d in (d % rank for d in dims):
        if [e % rank for e in dims].count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return tuple(
        _differences(input, d % input.dim(), s, edge_order)
        for d, s in zip(dims, steps, strict=True)
    )
