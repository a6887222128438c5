"""The transforms of `torch.fft`, which PyTorch makes of three kernels and of views.

Real numbers become complex, sizes are cut or filled up to what was asked for, and a transform of
real numbers backward is the conjugate of one forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from leafax.functional.ops.fft.kernels import BY_POINTS, BY_ROOT, NO_SCALE
from leafax.functional.program.dtypes import default_float
from leafax.functional.program.op import TABLE

from ..._core.dtypes import of
from ..._dispatch.record import apply
from .registry import composes

_C2C, _R2C, _C2R = (TABLE[f"_fft_{kind}"] for kind in ("c2c", "r2c", "c2r"))
_PAD = TABLE["constant_pad_nd"]

Dims = tuple[int, ...]
How = Callable[..., Any]


def _scaled(norm: str | None, forward: bool) -> int:
    if norm == "ortho":
        return BY_ROOT
    return BY_POINTS if (norm == "forward") == forward else NO_SCALE


def _promoted(x: Any, need_complex: bool) -> Any:
    """Promote integers to floating point, and numbers to complex if need be, in one step."""
    dtype = x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = of(default_float())
    if need_complex and not dtype.is_complex:
        dtype = dtype.to_complex()
    return x if x.dtype == dtype else x.to(dtype)


def _resized(x: Any, dims: Dims, sizes: Sequence[int] | None) -> Any:
    """Cut each of `dims`, or fill it with zeros, to its size; -1 leaves it as it is."""
    pad = [0] * (2 * x.dim())
    for d, size in zip(dims, sizes or (), strict=sizes is not None):
        missing = 0 if size == -1 else size - x.shape[d]
        if missing < 0:
            x = x.narrow(d, 0, size)
        elif missing:
            pad[2 * (x.dim() - 1 - d) + 1] = missing
    return apply(_PAD, x, tuple(pad)) if any(pad) else x


def _complex(x: Any, s: Any, dims: Dims, norm: str | None, forward: bool) -> Any:
    """Compute `fftn`, or `ifftn` if not `forward`."""
    x = _resized(_promoted(x, True), dims, s)
    return apply(_C2C, x, dims, _scaled(norm, forward), forward)


def _complex_along_one(x: Any, s: Any, dims: Dims, norm: str | None, forward: bool) -> Any:
    """Compute `fft` or `ifft`; real numbers go by symmetry."""
    if x.is_complex():
        return _complex(x, s, dims, norm, forward)
    x = _resized(_promoted(x, False), dims, s)
    out = apply(_R2C, x, dims, _scaled(norm, forward), False)
    return out if forward else out.conj()


def _real(x: Any, s: Any, dims: Dims, norm: str | None, forward: bool) -> Any:
    """Compute `rfftn` or `ihfftn`: one half of a symmetric result."""
    x, scale = _resized(_promoted(x, False), dims, s), _scaled(norm, forward)
    if forward:
        return apply(_R2C, x, dims, scale, True)
    half = apply(_R2C, x, dims[-1:], scale, True)
    if len(dims) == 1:
        return half.conj()
    return apply(_C2C, half.conj_physical(), dims[:-1], scale, False)


def _half(x: Any, s: Any, dims: Dims, norm: str | None, forward: bool) -> Any:
    """Compute `irfftn` or `hfftn`: real numbers from one half of symmetric ones."""
    last = 2 * (x.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else s[-1]
    sizes = None if s is None else (*s[:-1], last // 2 + 1)
    x, scale = _resized(_promoted(x, True), dims, sizes), _scaled(norm, forward)
    if forward and len(dims) > 1:
        x, dims = apply(_C2C, x, dims[:-1], scale, True), dims[-1:]
    return apply(_C2R, x.conj() if forward else x, dims, scale, last)


def _along_one(how: How, input: Any, n: int | None, dim: int, norm: str | None) -> Any:
    return how(input, None if n is None else (n,), (dim % input.dim(),), norm)


def _along_several(how: How, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
    s = (s,) if isinstance(s, int) else s
    if dim is None:
        dim = range(input.dim() - len(s), input.dim()) if s is not None else range(input.dim())
    dims = (dim,) if isinstance(dim, int) else dim
    return how(input, s, tuple(d % input.dim() for d in dims), norm)


for _names, _kind, _kind_of_one in (
    (("fft", "ifft"), _complex, _complex_along_one),
    (("rfft", "ihfft"), _real, _real),
    (("hfft", "irfft"), _half, _half),
):
    for _name in _names:
        _forward = _name == _names[0]
        composes(f"fft.{_name}")(partial(_along_one, partial(_kind_of_one, forward=_forward)))
        for _more in "2n":
            composes(f"fft.{_name}{_more}")(
                partial(_along_several, partial(_kind, forward=_forward))
            )
