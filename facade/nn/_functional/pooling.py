"""Pools: maxima with or without indices, and power averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._ops.calls.functions import function, plain

_F = "nn.functional."


def _max_pool(dims: int) -> Callable[..., Any]:
    op = TABLE[f"{_F}max_pool{dims}d"]
    indexed = TABLE[f"{_F}max_pool{dims}d_with_indices"]

    def max_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        stride = None if isinstance(stride, (list, tuple)) and not stride else stride
        args = [plain(a) for a in (kernel_size, stride, padding, dilation, ceil_mode)]
        if return_indices:
            return tuple(apply(indexed, input, *args))
        return apply(op, input, *args)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dims}d"
    max_pool.__doc__ = f"Maxima over windows of the last {dims} dims, and where they are if asked."
    return max_pool


def _adaptive_max_pool(dims: int) -> Callable[..., Any]:
    op = TABLE[f"{_F}adaptive_max_pool{dims}d"]
    indexed = TABLE[f"{_F}adaptive_max_pool{dims}d_with_indices"]

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        size = _numbers(output_size, dims)
        if return_indices:
            return tuple(apply(indexed, input, size))
        return apply(op, input, size)

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{dims}d"
    pool.__doc__ = "Maxima over as many windows as `output_size` says."
    return pool


def _numbers(size: Any, dims: int) -> Any:
    """Return a size as numbers, some of which may be given by tensors of one integer."""
    if isinstance(size, (list, tuple)):
        return plain(type(size)(_numbers(n, 1) for n in size))
    if not isinstance(size, Handle):
        return plain(size)
    if size.is_floating_point():  # type: ignore[attr-defined]
        raise TypeError(
            f"adaptive_max_pool{dims}d(): argument 'output_size' (position 2) must be tuple of "
            "ints, not Tensor"
        )
    if dims == 1:
        return int(size)  # type: ignore[call-overload]
    len(size)  # type: ignore[arg-type]  # which none of no dims has
    return [int(n) for n in size]  # type: ignore[attr-defined]


def _indexed(name: str) -> Callable[..., Any]:
    pool = function(TABLE[_F + name])

    def fn(*args: Any, return_indices: bool = True, **kwargs: Any) -> Any:
        return tuple(pool(*args, **kwargs))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = "Maxima and their positions."
    return fn


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_max_pool(1), _adaptive_max_pool(2), _adaptive_max_pool(3),
)  # fmt: skip
FUNCTIONS = {
    name: _indexed(name)
    for d in "123"
    for name in (f"max_pool{d}d_with_indices", f"adaptive_max_pool{d}d_with_indices")
}

_MAX = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVG = {d: function(TABLE[f"{_F}avg_pool{d}d"]) for d in (1, 2, 3)}


def _lp_pool(dims: int) -> Callable[..., Any]:
    def pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        if norm_type == float("inf"):
            return _MAX[dims](input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        if norm_type == -float("inf"):
            return -_MAX[dims](-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        size = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,) * dims
        count = 1
        for n in size:
            count *= n
        out = _AVG[dims](input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = f"lp_pool{dims}d"
    pool.__doc__ = "The p-norm over windows."
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)
