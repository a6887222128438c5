"""Empty tensors laid out with strides of the caller's choice."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._core.size_arguments import size_of
from ..._dispatch.record import apply
from ..._storage.settle import settle
from .factories import empty


def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return a tensor with these strides, whose values mean nothing (zeros here)."""
    size, stride = size_of((tuple(size),), "empty_strided"), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(stride)})"
        )
    if 0 not in size and any((n - 1) * s < 0 for n, s in zip(size, stride, strict=True)):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    span = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if span >= 1 << 60:  # XLA would end the process
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    memory = empty(span, dtype=dtype, device=device)
    with no_grad():
        out = apply(TABLE["as_strided"], memory, size, stride, 0)
    if out._viewed is not None:
        settle(out)
    out._base_ = None  # the storage is its own: it is no view of another tensor
    return out._set_requires_grad(True) if requires_grad else out


def empty_permuted(size: Any, physical_layout: Any, **kwargs: Any) -> Any:
    """Return a tensor whose dims lie in memory in this order, outermost first; zeros here."""
    size, order = tuple(size), tuple(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    stride, step, seen = [0] * len(size), 1, set()
    for dim in reversed(order):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got "
                f"{dim} at index {order.index(dim)}).  NB: negative dims not currently supported; "
                "file an issue if you want it."
            )
        if dim in seen:
            raise RuntimeError("Duplicate dim not allowed")
        seen.add(dim)
        stride[dim] = step
        step *= max(size[dim], 1)
    return empty_strided(size, stride, **kwargs)
