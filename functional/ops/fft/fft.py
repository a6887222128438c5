"""Discrete Fourier transforms, `torch.fft`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import default_float, is_complex, is_floating, scalar_name
from ...program.op import op

Array = jax.Array

Dims = int | Sequence[int]

_FORWARD = {None: "backward", "backward": "backward", "forward": "forward", "ortho": "ortho"}


def _norm(norm: str | None) -> str:
    if norm not in _FORWARD:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return _FORWARD[norm]


def _widened(x: Array, need_complex: bool) -> Array:
    if not is_floating(x.dtype) and not is_complex(x.dtype):
        x = x.astype(default_float())
    if x.dtype.itemsize < 4:  # the library that PyTorch calls has no kernels for these
        raise RuntimeError(f"Unsupported dtype {scalar_name(x.dtype)}")
    if need_complex and not is_complex(x.dtype):
        x = x.astype(np.result_type(x.dtype, np.complex64))
    return x


def _need_real(x: Array, words: str) -> None:
    if is_complex(x.dtype):
        raise RuntimeError(words + scalar_name(x.dtype))


def _dim(x: Array, dim: int) -> int:
    ndim = x.ndim
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def _points(n: int | None, default: int) -> int:
    n = default if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _one(name: str, kind: str) -> Callable[..., Array]:
    transform = getattr(jnp.fft, name)

    def fn(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
        if kind == "real":
            _need_real(input, f"{name} expects a real input tensor, but got ")
        x = _widened(input, kind != "real")
        dim = _dim(x, dim)
        size = x.shape[dim]
        default = 2 * (size - 1) if kind == "half" else size
        return transform(x, _points(n, default), axis=dim, norm=_norm(norm))

    fn.__name__ = name
    fn.__doc__ = (
        f"Compute the one-dimensional `{name}` along `dim`, cut or filled up to `n` points."
    )
    return fn


def _axes(x: Array, s: Dims | None, dim: Dims | None) -> tuple[tuple[int, ...], list[int]]:
    """Return the dims to transform and their sizes after cutting or filling."""
    if dim is not None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        dims = tuple(_dim(x, d) for d in dims)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    elif s is not None:
        count = 1 if isinstance(s, int) else len(s)
        if count > x.ndim:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {x.ndim} dimensions."
            )
        dims = tuple(range(x.ndim - count, x.ndim))
    else:
        dims = tuple(range(x.ndim))
    sizes = [-1] * len(dims) if s is None else [s] if isinstance(s, int) else list(s)
    if len(sizes) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [x.shape[d] if n == -1 else n for n, d in zip(sizes, dims, strict=True)]
    for n in sizes:
        _points(n, n)
    return dims, sizes


def _many(name: str, kind: str, last_two: bool) -> Callable[..., Array]:
    default: Any = (-2, -1) if last_two else None
    base = name[:-1] + "n" if last_two else name

    def fn(input: Array, s: Any = None, dim: Any = default, norm: str | None = None) -> Array:
        if base == "rfftn":
            _need_real(input, "rfftn expects a real-valued input tensor, but got ")
        dims, sizes = _axes(input, s, dim)
        if kind in ("half", "real") and not dims:
            raise RuntimeError(f"{base} must transform at least one axis")
        if kind == "half":
            if s is None or (s if isinstance(s, int) else s[-1]) == -1:
                sizes[-1] = 2 * (input.shape[dims[-1]] - 1)
            _points(sizes[-1], sizes[-1])
        x = _widened(input, kind != "real")
        how = _norm(norm)
        if base == "ihfftn":  # the kernel says so
            _need_real(input, "Only supports floating-point dtypes, but found: ")
        if base in ("fftn", "ifftn"):
            one = jnp.fft.fft if base == "fftn" else jnp.fft.ifft
            for d, n in zip(dims, sizes, strict=True):
                x = one(x, n, axis=d, norm=how)
            return x
        *rest, last = zip(dims, sizes, strict=True)
        if base in ("rfftn", "ihfftn"):
            first = jnp.fft.rfft if base == "rfftn" else jnp.fft.ihfft
            other = jnp.fft.fft if base == "rfftn" else jnp.fft.ifft
            x = first(x, last[1], axis=last[0], norm=how)
            for d, n in rest:
                x = other(x, n, axis=d, norm=how)
            return x
        final = jnp.fft.irfft if base == "irfftn" else jnp.fft.hfft
        other = jnp.fft.ifft if base == "irfftn" else jnp.fft.fft
        for d, n in rest:
            x = other(x, n, axis=d, norm=how)
        return final(x, last[1], axis=last[0], norm=how)

    fn.__name__ = name
    fn.__doc__ = f"Compute `{name}` over several dims, each cut or filled up to its size in `s`."
    return fn


_KINDS = {
    "fft": "complex", "ifft": "complex", "rfft": "real", "irfft": "half", "hfft": "half",
    "ihfft": "real",
}  # fmt: skip
_NODES = {"complex": "FftC2CBackward0", "real": "FftR2CBackward0", "half": "FftC2RBackward0"}
for _name, _kind in _KINDS.items():
    op(name=_name, namespace="fft", method=False, backward=_NODES[_kind])(_one(_name, _kind))
    for _suffix, _last_two in (("2", True), ("n", False)):
        op(name=_name + _suffix, namespace="fft", method=False, backward=_NODES[_kind])(
            _many(_name + _suffix, _kind, _last_two)
        )


def _shift(name: str, sign: int) -> Callable[..., Array]:
    def fn(input: Array, dim: Any = None) -> Array:
        dims = tuple(range(input.ndim)) if dim is None else dim
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        dims = tuple(_dim(input, d) for d in dims)
        if not dims:
            raise RuntimeError("`shifts` required")  # as `roll` says, which this is in PyTorch
        sizes = [input.shape[d] for d in dims]
        shifts = [n // 2 if sign > 0 else (n + 1) // 2 for n in sizes]
        return jnp.roll(input, shifts, dims)

    fn.__name__ = name
    fn.__doc__ = "Move the zero frequency to the middle, or back."
    return fn


op(name="fftshift", namespace="fft", method=False, backward="RollBackward0")(_shift("fftshift", 1))
op(name="ifftshift", namespace="fft", method=False, backward="RollBackward0")(
    _shift("ifftshift", -1)
)


def _of_frequencies(name: str, dtype: Any) -> Any:
    dtype = np.dtype(dtype or default_float())
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.kind == "c":
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{scalar_name(dtype)}'")
    return dtype


@op(name="fftfreq", namespace="fft", method=False, differentiable=False)
def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Array:
    """Return the frequencies of `fft` for `n` points `d` apart."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    return jnp.fft.fftfreq(n, d).astype(_of_frequencies("fftfreq", dtype))


@op(name="rfftfreq", namespace="fft", method=False, differentiable=False)
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Array:
    """Return the frequencies of `rfft` for `n` points `d` apart."""
    return jnp.fft.rfftfreq(n, d).astype(_of_frequencies("rfftfreq", dtype))
