"""Convolutions of every rank, plain and transposed: one body, seven entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cpp_name, is_floating, scalar_name
from ...program.op import op
from .checks import repeated, size_list
from .convolve import convolve

Array = jax.Array
Ints = int | Sequence[int]

ALSO_FUNCTIONAL = (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip

_SAVES = {"input": "*", "weight": "*"}


def _listed(name: str, value: Ints, dims: int, given: int) -> tuple[int, ...]:
    """Return `dims` ints; an int counts as a list of `given`, as in PyTorch's argument parser."""
    values = (value,) * given if isinstance(value, (int, np.integer)) else tuple(value)
    if len(values) == 1:
        return tuple(int(v) for v in values) * dims
    if len(values) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match "
            f"the convolution dimensions, but got {name}={size_list(values)}"
        )
    return tuple(int(v) for v in values)


def _check_values(
    stride: tuple[int, ...], pads: Sequence[tuple[int, int]], dilation: tuple[int, ...],
    output_padding: tuple[int, ...],
) -> None:  # fmt: skip
    if min(map(min, pads)) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    if min(dilation) == 0:
        raise RuntimeError("non-positive dilation is not supported")


def _check_rank(x: Array, weight: Array, space: str = " ") -> None:
    if x.ndim != weight.ndim:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{space}"
            f"{size_list(weight.shape)}, but got {x.ndim}-dimensional input of size "
            f"{size_list(x.shape)} instead"
        )


def _check_shapes(
    x: Array, weight: Array, bias: Array | None, transposed: bool, groups: int
) -> None:
    shown = size_list(weight.shape)
    _check_rank(x, weight)
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {shown} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{shown}] instead"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels:
        given = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {shown}, expected input{size_list(x.shape)} to have "
            f"{channels} channels, but got {x.shape[1]} channels instead"
        )
    out = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (out,):
        given = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {given}weight of size {shown}, expected bias to be "
            f"1-dimensional with {out} elements, but got bias of size {size_list(bias.shape)} "
            "instead"
        )


def _check_size(weight: Array, transposed: bool) -> None:
    """Check the weight as PyTorch's kernels do, which run one dim as two."""
    kernel = weight.shape[2:]
    if len(kernel) == 3 and transposed and 0 in weight.shape[1:]:
        raise RuntimeError(
            "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x "
            f"kernel_width) tensor expected for weight, but got: {size_list(weight.shape)}"
        )
    if transposed and not weight.shape[1]:
        shape = (*weight.shape[:2], *((1,) if len(kernel) == 1 else ()), *kernel)
        raise RuntimeError(
            f"non-empty 2D or 4D weight tensor expected, but got: {size_list(shape)}"
        )
    if 0 in kernel:
        height, width = (1, *kernel)[-2:]
        found = f"but got kernel_height: {height} kernel_width: {width}"
        if len(kernel) == 3:
            found = "but got: " + " x ".join(map(str, kernel)) + " (TxHxW)"
        raise RuntimeError(f"kernel size should be greater than zero, {found}")


def _check_dtypes(x: Array, weight: Array, bias: Array | None) -> None:
    for name, other in (("weight", weight), ("bias", bias)):
        if other is None or other.dtype == x.dtype:
            continue
        if not (is_floating(x.dtype) and is_floating(other.dtype)):
            raise RuntimeError(
                f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(other.dtype)}"
            )
        raise RuntimeError(
            f"Input type (torch.{scalar_name(x.dtype)}Tensor) and {name} type "
            f"(torch.{scalar_name(other.dtype)}Tensor) should be the same or input should be a "
            f"MKLDNN tensor and {name} is a dense tensor"
        )


def _check_bias_dtype(x: Array, bias: Array | None) -> None:
    """Refuse a model of another dtype than its data; PyTorch looks at the bias first."""
    if bias is not None and bias.dtype != x.dtype:
        raise RuntimeError(
            f"Input type ({cpp_name(x.dtype)}) and bias type ({cpp_name(bias.dtype)}) should be "
            "the same"
        )


def _times(sizes: Sequence[int]) -> str:
    return "(" + " x ".join(str(n) for n in sizes) + ")"


def _check_kernel(padded: Sequence[int], kernel: Sequence[int]) -> None:
    if any(n < k for n, k in zip(padded, kernel, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: {_times(padded)}. Kernel size: "
            f"{_times(kernel)}. Kernel size can't be greater than actual input size"
        )


def _check_output_padding(
    output_padding: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    rows = zip(output_padding, stride, dilation, strict=True)
    if all(o < s or o < d for o, s, d in rows):
        return
    # PyTorch runs one dim as two.
    columns = [("output_padding", output_padding, 0), ("stride", stride, 1)]
    columns.append(("dilation", dilation, 1))
    axes = ("depth", "height", "width")[-max(len(stride), 2) :]
    parts = []
    for name, values, filler in columns:
        values = (filler,) * (len(axes) - len(values)) + values
        parts += [f"{name}_{axis}: {v}" for axis, v in zip(axes, values, strict=True)]
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got " + " ".join(parts)
    )


def _convolution(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints | str,
    dilation: Ints, transposed: bool, output_padding: Ints, groups: int, given: int,
) -> Array:  # fmt: skip
    """Convolve batched `x`; `given` is the number of dims that an int argument stands for."""
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    dims = weight.ndim - 2
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if isinstance(padding, str):
        _check_rank(x, weight, "")
    stride = _listed("stride", stride, dims, given)
    dilation = _listed("dilation", dilation, dims, given)
    kernel = tuple(d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True))
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same" and set(stride) != {1}:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [k - 1 if padding == "same" else 0 for k in kernel]
        pads = [(n // 2, n - n // 2) for n in totals]
        padding = 0
    else:
        padding = _listed("padding", padding, dims, given)
        pads = [(p, p) for p in padding]
    output_padding = _listed("output_padding", output_padding, dims, given)
    _check_values(stride, pads, dilation, output_padding)
    _check_shapes(x, weight, bias, transposed, groups)
    if not transposed:
        padded = [n + lo + hi for n, (lo, hi) in zip(x.shape[2:], pads, strict=True)]
        _check_kernel(padded, kernel)
    else:
        _check_output_padding(output_padding, stride, dilation)
    _check_dtypes(x, weight, bias)
    _check_size(weight, transposed)
    ones = (1,) * dims
    if not transposed and not x.shape[1]:  # no channels give none, whatever the weight has
        sizes = [(n - k) // s + 1 for n, k, s in zip(padded, kernel, stride, strict=True)]
        return jnp.zeros((x.shape[0], 0, *sizes), x.dtype)
    if not transposed:
        y = convolve(x, weight, stride, pads, ones, dilation, groups)
    else:
        # The gradient of a convolution: swap channels within groups, mirror, spread the input.
        shape = weight.shape
        w = weight.reshape((groups, shape[0] // groups) + shape[1:]).swapaxes(1, 2)
        w = w.reshape((groups * shape[1], shape[0] // groups) + shape[2:])
        w = jax.lax.rev(w, tuple(range(2, w.ndim)))
        rows = zip(kernel, pads, output_padding, strict=True)
        pads = [(k - 1 - p, k - 1 - p + extra) for k, (p, _), extra in rows]
        sizes = [
            (n - 1) * s + 1 + lo + hi - k + 1
            for n, s, (lo, hi), k in zip(x.shape[2:], stride, pads, kernel, strict=True)
        ]
        if any(n < 1 for n in sizes):  # of lengths that are symbols none is known to be the least
            raise RuntimeError(
                f"Given input size per channel: {_times(x.shape[2:])}. Calculated output size per "
                f"channel: {_times(sizes)}. Output size is too small"
            )
        y = convolve(x, w, ones, pads, stride, dilation, groups)
    return y if bias is None else y + repeated(bias.reshape((-1,) + (1,) * dims), y.shape)


@op(method=False, saves=_SAVES)
def convolution(
    input: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints | str,
    dilation: Ints, transposed: bool, output_padding: Ints, groups: int,
) -> Array:  # fmt: skip
    """Convolve a batch; `weight` is `(out, in / groups, ...)`, transposed `(in, out / groups)`."""
    return _convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
        max(weight.ndim - 2, 1),
    )  # fmt: skip


def _ranked(name: str, dims: int, input: Array, *args: Any) -> Array:
    """Convolve a batch or a single sample."""
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got "
            f"input of size: {size_list(input.shape)}"
        )
    if input.ndim == dims + 2:
        return _convolution(input, *(*args, dims))
    return _convolution(input[None], *(*args, dims))[0]


def _enter(dims: int) -> None:
    """Enter `conv{dims}d` and `conv_transpose{dims}d`, which differ from each other by rank."""

    def conv(
        input: Array, weight: Array, bias: Array | None = None, stride: Ints = 1,
        padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1,
    ) -> Array:  # fmt: skip
        name = f"conv{dims}d"
        if not isinstance(padding, str):
            _check_bias_dtype(input, bias)
        return _ranked(name, dims, input, weight, bias, stride, padding, dilation, False, 0, groups)

    def transpose(
        input: Array, weight: Array, bias: Array | None = None, stride: Ints = 1,
        padding: Ints = 0, output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
    ) -> Array:  # fmt: skip
        name, rest = f"conv_transpose{dims}d", (dilation, True, output_padding, groups)
        return _ranked(name, dims, input, weight, bias, stride, padding, *rest)

    for fn, name in ((conv, f"conv{dims}d"), (transpose, f"conv_transpose{dims}d")):
        fn.__name__ = fn.__qualname__ = name
        kind = "a transposed convolution" if fn is transpose else "a convolution"
        fn.__doc__ = f"Compute {kind} over {dims} dims, of a batch or of a single sample."
        globals()[name] = op(method=False, backward="ConvolutionBackward0", saves=_SAVES)(fn)


for _dims in (1, 2, 3):
    _enter(_dims)
