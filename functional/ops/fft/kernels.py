"""The kernels of all transforms of `torch.fft`: `_fft_c2c`, `_fft_r2c` and `_fft_c2r`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ...program.dtypes import is_complex, is_floating, scalar_name
from ...program.op import op

Array = jax.Array
Dims = tuple[int, ...]

# PyTorch's numbers of how a transform is scaled: not at all, by the root of the points, by them.
NO_SCALE, BY_ROOT, BY_POINTS = 0, 1, 2
# The word for that in NumPy depends on the direction.
_FORWARD = {NO_SCALE: "backward", BY_ROOT: "ortho", BY_POINTS: "forward"}
_BACKWARD = {NO_SCALE: "forward", BY_ROOT: "ortho", BY_POINTS: "backward"}


def _need_complex(x: Array) -> None:
    if not is_complex(x.dtype):
        raise RuntimeError(f"Only supports complex dtypes, but found: {scalar_name(x.dtype)}")


def _along(x: Array, dims: Dims, one: Callable[..., Array], norm: str) -> Array:
    for d in dims:
        x = one(x, axis=d, norm=norm)
    return x


@op(method=False, backward="FftC2CBackward0")
def _fft_c2c(input: Array, dim: Dims, normalization: int, forward: bool) -> Array:
    """Transform complex numbers along `dim` to the same shape."""
    _need_complex(input)
    one = jnp.fft.fft if forward else jnp.fft.ifft
    return _along(input, dim, one, (_FORWARD if forward else _BACKWARD)[normalization])


@op(method=False, saves={"self": "*"}, backward="FftR2CBackward0")
def _fft_r2c(input: Array, dim: Dims, normalization: int, onesided: bool) -> Array:
    """Transform real numbers; the last of `dim` is halved if it is one-sided."""
    if not is_floating(input.dtype):
        name = scalar_name(input.dtype)
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {name}")
    norm, (*rest, last) = _FORWARD[normalization], dim
    x = (jnp.fft.rfft if onesided else jnp.fft.fft)(input, axis=last, norm=norm)
    return _along(x, tuple(rest), jnp.fft.fft, norm)


@op(method=False, backward="FftC2RBackward0")
def _fft_c2r(input: Array, dim: Dims, normalization: int, last_dim_size: int) -> Array:
    """Invert a one-sided transform, whose last dim gets `last_dim_size` points."""
    _need_complex(input)
    norm, (*rest, last) = _BACKWARD[normalization], dim
    x = _along(input, tuple(rest), jnp.fft.ifft, norm)
    return jnp.fft.irfft(x, last_dim_size, axis=last, norm=norm)
