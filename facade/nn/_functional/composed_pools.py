"""Pools and convolutions that PyTorch makes of others: of one dim, of one sample."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE, Op

from ..._core.trie import local
from ..._dispatch.record import apply
from ..._ops.composites.registry import composes, under_grad

_F = "nn.functional."
_SQUEEZE, _UNSQUEEZE = TABLE["squeeze"], TABLE["unsqueeze"]
_PAD = TABLE["constant_pad_nd"]


# Padding that repeats what is there: unlike zeros, it saves its input.
_PADDING = TABLE[_F + "pad"]
_REPEATING = Op(
    _PADDING.fn, name=_PADDING.name, namespace=_PADDING.namespace, backward=_PADDING.backward,
    saves={"self": "*"}, fits=_PADDING.fits,
)  # fmt: skip


@composes(_F + "pad")
def _pad(input: Any, pad: Any, mode: Any, value: Any) -> Any:
    repeats = mode in ("reflect", "replicate")
    return apply(_REPEATING, input, pad, mode, value) if repeats else None


def _one(size: Any) -> Any:
    return size[0] if isinstance(size, (tuple, list)) else size


def _rows(name: str, input: Any, *args: Any) -> Any:
    """Return the pool of two dims with `input` as a row; one result, or each of several."""
    made = apply(TABLE[_F + name], apply(_UNSQUEEZE, input, -2), *args)
    if not isinstance(made, tuple):
        return apply(_SQUEEZE, made, -2)
    return type(made)(*[apply(_SQUEEZE, t, -2) for t in made])  # type: ignore[call-arg]


@composes(_F + "avg_pool1d")
def _avg_pool1d(
    input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, count_include_pad: Any
) -> Any:
    kernel = _one(kernel_size)
    stride = _one(stride) if stride not in (None, (), []) else kernel
    sizes = (1, kernel), (1, stride), (0, _one(padding))
    return _rows("avg_pool2d", input, *sizes, ceil_mode, count_include_pad)


@composes(_F + "max_pool1d")
def _max_pool1d(input: Any, *args: Any) -> Any:
    if not under_grad(local.mode, input):  # PyTorch has a kernel for this
        return None
    return _rows("max_pool2d", input, *_max_sizes(*args))


@composes(_F + "max_pool1d_with_indices")
def _max_pool1d_with_indices(input: Any, *args: Any) -> Any:
    return _rows("max_pool2d_with_indices", input, *_max_sizes(*args))


def _max_sizes(
    kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> tuple[Any, ...]:
    kernel = _one(kernel_size)
    stride = _one(stride) if stride not in (None, (), []) else kernel
    return (1, kernel), (1, stride), (0, _one(padding)), (1, _one(dilation)), ceil_mode


@composes(_F + "adaptive_avg_pool1d")
def _adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    return _rows("adaptive_avg_pool2d", input, (1, _one(output_size)))


@composes(_F + "adaptive_max_pool1d")
def _adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    return _rows("adaptive_max_pool2d", input, (1, _one(output_size)))


@composes(_F + "adaptive_max_pool1d_with_indices")
def _adaptive_max_pool1d_with_indices(input: Any, output_size: Any) -> Any:
    return _rows("adaptive_max_pool2d_with_indices", input, (1, _one(output_size)))


def _mean_of_all(dims: int) -> None:
    """The average over everything is a mean; channels-last inputs' results are laid out anew."""

    @composes(f"{_F}adaptive_avg_pool{dims}d")
    def pool(input: Any, output_size: Any) -> Any:
        sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,)
        if any(n != 1 for n in sizes) or not input.is_contiguous() or not input.numel():
            return None
        return input.mean(tuple(range(-1, -dims - 1, -1)), True)


_mean_of_all(2)
_mean_of_all(3)


def _conv(dims: int) -> None:
    op, transpose = TABLE[f"conv{dims}d"], TABLE[f"conv_transpose{dims}d"]

    def unbatched(op: Any, input: Any, *args: Any) -> Any:
        if input.dim() != dims + 1:
            return None
        return apply(_SQUEEZE, apply(op, apply(_UNSQUEEZE, input, 0), *args), 0)

    @composes(op.name)
    def conv(
        input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
    ) -> Any:
        if input.dim() == dims + 1 or padding != "same":
            return unbatched(op, input, weight, bias, stride, padding, dilation, groups)
        steps = dilation if isinstance(dilation, (tuple, list)) else (dilation,)
        steps = tuple(steps) * (dims if len(steps) == 1 else 1)
        totals = [d * (k - 1) for d, k in zip(steps, weight.shape[2:], strict=True)]
        if not any(n % 2 for n in totals):
            return None
        pads = [n for total in reversed(totals) for n in (0, total % 2)]  # more on the far side
        input = apply(_PAD, input, tuple(pads), 0)
        halves = tuple([n // 2 for n in totals])
        return apply(op, input, weight, bias, stride, halves, dilation, groups)

    composes(transpose.name)(lambda *args: unbatched(transpose, *args))


for _dims in (1, 2, 3):
    _conv(_dims)


@composes(_F + "interpolate")
def _area(input: Any, size: Any, scale_factor: Any, mode: str, *rest: Any) -> Any:
    if mode != "area":
        return None
    dims = input.dim() - 2
    if size is None:
        scales = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * dims
        size = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], scales, strict=True)]
    elif not isinstance(size, (tuple, list)):
        size = [size] * dims
    return apply(TABLE[f"{_F}adaptive_avg_pool{dims}d"], input, tuple(size))
