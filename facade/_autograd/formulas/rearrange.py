"""Gradients of what turns, pads, sums up or bounds, as PyTorch's formulas spell them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ..._core.dtypes import of
from ..._dispatch.record import apply
from .scalar_ops import plus, times
from .shapes import of_mean, spread
from .tools import Formula, NoFormula, conj, dims_of


def _flipped(s: Any) -> Any:
    name = s.node.state.call.op.name
    dims = {"fliplr": 1, "flipud": 0}.get(name)
    return s.g.flip(s.static("dims") if dims is None else dims)


def _rolled(s: Any) -> Any:
    shifts, dims = s.static("shifts"), s.static("dims", ())
    if isinstance(shifts, int):
        shifts, dims = (shifts,), (dims,) if isinstance(dims, int) else dims
    return s.g.roll(tuple(-n for n in shifts[::-1]), tuple(dims)[::-1])


def summed_up(x: Any, dim: int) -> Any:
    """At each place what is there and after it."""
    return x.flip(dim).cumsum(dim).flip(dim)


def _cumsum(s: Any) -> Any:
    return summed_up(s.g, s.static("dim")) if s.shape() and s.g.numel() else s.g


def _repeated(s: Any) -> Any:
    shape, grad = s.shape(), s.g
    repeats = s.static("repeats", s.static("dims"))
    repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    if not grad.numel():
        return grad.new_zeros(shape)
    repeats = (1,) * (len(shape) - len(repeats)) + repeats
    for _ in range(len(repeats) - len(shape)):
        grad = grad.sum(0)
    size: list[int] = []
    dims: list[int] = []
    for n, count in zip(shape, repeats[len(repeats) - len(shape) :], strict=True):
        if count != 1:
            dims.append(len(size))
            size.append(count)
        size.append(n)
    return grad.reshape(size).sum(dims) if dims else grad


def _unpadded(s: Any) -> Any:
    if s.static("mode", "constant") != "constant":
        raise NoFormula
    return apply(TABLE["nn.functional.pad"], s.g, tuple(-n for n in s.static("pad")))


def _bounded(s: Any) -> Any:
    """Differentiate `clamp`: what lies between the bounds gets its gradient."""
    x, there = s["input"], None
    for name in ("min", "max"):
        bound = s[name] if s.static(name) is not None else None
        if bound is not None:
            inside = x >= bound if name == "min" else x <= bound
            there = inside if there is None else there & inside
    return s.g if there is None else s.g.where(there, s.g.new_zeros(()))


def _bound(s: Any, mine: str, other: str) -> Any:
    """Differentiate by a bound that is a tensor: what lies beyond it gives it its gradient."""
    x, bound = s["input"], s[mine]
    beyond = x < bound if mine == "min" else x > bound
    if s.static(other) is not None:
        opposite = s[other]
        crossed = bound < opposite
        beyond = beyond & crossed if mine == "min" else beyond | crossed
    return s.g.where(beyond, s.g.new_zeros(()))


def _where_numbers(s: Any) -> Any:
    """Differentiate `nansum`: what was counted as 0 gets no gradient."""
    return spread(s) * s["input"].isnan().logical_not()


def of_variance(s: Any, grad: Any) -> Any:
    """Compute the gradient of what `grad`, the variance's, is taken of."""
    x, dim = s["input"], s.static("dim")
    whole = dim is None or isinstance(dim, bool) or not x.dim()
    dims = list(range(x.dim())) if whole else dims_of(dim, x.dim())
    if not whole and x.dim() > 1 and not s.static("keepdim", False):
        for d in dims:
            grad = grad.unsqueeze(d)
    given, count = s.static("correction"), math.prod(x.shape[d] for d in dims)
    unbiased = dim if isinstance(dim, bool) else s.static("unbiased")
    correction = given if given is not None else 1 if unbiased is None else int(unbiased)
    over = max(count - correction, 0)
    mean = x.mean() if whole else x.mean(dims, keepdim=True)
    return times(grad, 2.0 / over if over else math.inf) * (x - mean)


def with_mean(s: Any, of_first: Any) -> Any:
    """Compute the gradient of what gives a mean after its first result, which has this gradient."""
    grad = s.grads[1] if len(s.grads) > 1 else None
    if grad is None:
        return of_first()
    rest = of_mean(s, grad)
    return rest if s.g is None else of_first() + rest


def _trace(s: Any) -> Any:
    rows, columns = s.shape()
    diagonal = np.arange(0, min(rows, columns) * (columns + 1), columns + 1)
    places = s.g.new_tensor(diagonal, dtype=of(np.dtype("int64")))
    return s.g.new_zeros(rows * columns).index_fill(0, places, s.g).view(rows, columns)


def _im2col(s: Any) -> Any:
    given = [s.static(k, d) for k, d in _WINDOWS]
    return apply(TABLE["nn.functional.fold"], s.g, s.shape()[-2:], *given)


def _col2im(s: Any) -> Any:
    return apply(TABLE["nn.functional.unfold"], s.g, *(s.static(k, d) for k, d in _WINDOWS))


# What windows are given by, with the defaults.
_WINDOWS = (("kernel_size", None), ("dilation", 1), ("padding", 0), ("stride", 1))


def _silu(s: Any) -> Any:
    x = s["input"]
    slope = x.sigmoid()
    return s.g * slope * plus(x * apply(TABLE["sub"], 1, slope), 1)


def _scattered(view: str, *names: str) -> dict[str, Formula]:
    """Differentiate `select_scatter` and its kin, by the view that was written to."""

    def rest(s: Any) -> list[Any]:
        return [s.static(n, default) for n, default in zip(names, _DEFAULTS[view], strict=True)]

    def whole(s: Any) -> Any:
        return getattr(s.g, f"{view}_scatter")(s.g.new_zeros(s.shape("src")), *rest(s))

    def part(s: Any) -> Any:
        given = rest(s)
        if view != "slice":
            return getattr(s.g, view)(*given)
        dim = given[0] % s.g.dim()
        return s.g[(slice(None),) * dim + (slice(*given[1:]),)]

    return {"input": whole, "src": part}


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "select": (None, None), "slice": (0, None, None, 1), "diagonal": (0, 0, 1),
}  # fmt: skip


def _transposed(x: Any) -> Any:
    return conj(x.transpose(1, 2))


def _of_diagonal(s: Any) -> Any:
    if len(s.shape()) != 1:
        raise NoFormula("a matrix's diagonal")
    return s.g.diagonal(s.static("diagonal", 0), 0, 1)


_CLAMPED: dict[str, Formula] = {
    "input": _bounded, "min": partial(_bound, mine="min", other="max"),
    "max": partial(_bound, mine="max", other="min"),
}  # fmt: skip
_FLIPPED: dict[str, Formula] = {"input": _flipped}
_REPEATED: dict[str, Formula] = {"input": _repeated}

FORMULAS: dict[str, dict[str, Formula]] = {
    "flip": _FLIPPED,
    "fliplr": _FLIPPED,
    "flipud": _FLIPPED,
    "roll": {"input": _rolled},
    "rot90": {"input": lambda s: s.g.rot90(-s.static("k", 1), s.static("dims", (0, 1)))},
    "tril": {"input": lambda s: s.g.tril(s.static("diagonal", 0))},
    "triu": {"input": lambda s: s.g.triu(s.static("diagonal", 0))},
    "cumsum": {"input": _cumsum},
    "repeat": _REPEATED,
    "tile": _REPEATED,
    "nn.functional.pad": {"input": _unpadded},
    "diag": {"input": _of_diagonal},
    "diag_embed": {
        "input": lambda s: s.g.diagonal(
            s.static("offset", 0), s.static("dim1", -2), s.static("dim2", -1)
        ),
    },
    "clamp": _CLAMPED,
    "clamp_min": _CLAMPED,
    "clamp_max": _CLAMPED,
    "nansum": {"input": _where_numbers},
    "nan_to_num": {"input": lambda s: s.g * s["input"].isfinite()},
    "var": {"input": lambda s: of_variance(s, s.g)},
    "var_mean": {"input": lambda s: with_mean(s, lambda: of_variance(s, s.g))},
    "trace": {"input": _trace},
    "nn.functional.unfold": {"input": _im2col},
    "nn.functional.fold": {"input": _col2im},
    "constant_pad_nd": {"input": _unpadded},
    "pixel_shuffle": {
        "input": lambda s: apply(TABLE["pixel_unshuffle"], s.g, s.static("upscale_factor")),
    },
    "pixel_unshuffle": {
        "input": lambda s: apply(TABLE["pixel_shuffle"], s.g, s.static("downscale_factor")),
    },
    "nn.functional.silu": {"input": _silu},
    "select_scatter": _scattered("select", "dim", "index"),
    "slice_scatter": _scattered("slice", "dim", "start", "end", "step"),
    "diagonal_scatter": _scattered("diagonal", "offset", "dim1", "dim2"),
    "baddbmm": {
        "input": lambda s: s.scaled(s.g, "beta"),
        "batch1": lambda s: s.scaled(s.g.bmm(_transposed(s["batch2"])), "alpha"),
        "batch2": lambda s: s.scaled(_transposed(s["batch1"]).bmm(s.g), "alpha"),
    },
    "addr": {
        "input": lambda s: s.scaled(s.g, "beta"),
        "vec1": lambda s: s.scaled(s.g.mv(conj(s["vec2"])), "alpha"),
        "vec2": lambda s: s.scaled(s.g.t().mv(conj(s["vec1"])), "alpha"),
    },
}
