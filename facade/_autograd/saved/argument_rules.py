"""Arguments that PyTorch's nodes keep under another name, or in another form, than the op has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._rules.inplace_activation_slopes import SELU_ALPHA, SELU_SCALE
from .recorded_call import RecordedCall, as_kept, count_spatial_dims, unsigned

_VARIANCES = ("var", "std", "var_mean", "std_mean")


_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2, "zeros": 0, "border": 1, "reflection": 2}


def _scale(place: int) -> Callable[[RecordedCall], Any]:
    def rule(kept: RecordedCall) -> Any:
        factor = kept.static("scale_factor")
        if factor is None:
            return None
        return float(factor[place] if isinstance(factor, (tuple, list)) else factor)

    return rule


def _output_size(kept: RecordedCall) -> tuple[int, ...]:
    sizes = (kept.shape("self") or ())[2:]
    given = kept.static("size")
    if given is not None:
        return (given,) * len(sizes) if isinstance(given, int) else tuple(given)
    scales = [_scale(k)(kept) for k in range(len(sizes))]
    return tuple(int(n * s) for n, s in zip(sizes, scales, strict=True))


def _start(kept: RecordedCall) -> int:
    """Give where a slice begins: as it was said, but `narrow` counts from the front."""
    start = int(kept.static("start") or 0)
    if start < 0 and kept.op == "narrow":
        return start + (kept.shape("self") or ())[kept.static("dim")]
    return int(unsigned(start))


def _end(kept: RecordedCall) -> int:
    if "end" not in kept.call.op.parameters:
        return _start(kept) + int(kept.static("length"))
    end = kept.static("end")
    return 2**63 - 1 if end is None else int(unsigned(end))


def _step(kept: RecordedCall) -> int:
    return int(kept.static("step")) if "step" in kept.call.op.parameters else 1


def _cross_dim(kept: RecordedCall) -> Any:
    dim = kept.static("dim")
    return (kept.shape("self") or ()).index(3) if dim is None else unsigned(dim)


def _moved(kept: RecordedCall) -> tuple[int, ...]:
    """Find the permutation that `movedim` is."""
    count = len(kept.shape("self") or ())
    pairs = [kept.static(name) for name in ("source", "destination")]
    source, destination = (
        [d % count for d in (p if isinstance(p, (tuple, list)) else (p,))] for p in pairs
    )
    rest = iter([d for d in range(count) if d not in source])
    placed = dict(zip(destination, source, strict=True))
    return tuple(placed[d] if d in placed else next(rest) for d in range(count))


RULES: dict[tuple[str, str], Callable[[RecordedCall], Any]] = {
    ("interpolate", "output_size"): _output_size,
    ("interpolate", "scales"): _scale(0),
    ("interpolate", "scales_h"): lambda k: _scale(len(k.shape("self") or ()) - 4)(k),
    ("interpolate", "scales_w"): lambda k: _scale(len(k.shape("self") or ()) - 3)(k),
    ("interpolate", "scales_d"): _scale(0),
    ("interpolate", "align_corners"): lambda k: bool(k.static("align_corners")),
    ("slice", "start"): _start, ("narrow", "start"): _start,
    ("slice", "end"): _end, ("narrow", "end"): _end,
    ("slice", "step"): _step, ("narrow", "step"): _step,
    ("mT", "dim0"): lambda k: unsigned(-2), ("mT", "dim1"): lambda k: unsigned(-1),
    ("cross", "dim"): _cross_dim, ("movedim", "dims"): _moved,
    ("split", "split_size"): lambda k: k.static("split_size_or_sections"),
    ("split", "split_sizes"): lambda k: k.static("split_size_or_sections"),
    ("chunk", "split_size"): lambda k: _split_size(k),
    ("unsafe_chunk", "split_size"): lambda k: _split_size(k),
    ("square", "exponent"): lambda k: 2,
    ("T", "dims"): lambda k: tuple(reversed(range(len(k.shape("self") or ())))),
    ("tile", "repeats"): lambda k: _repeats(k),
    ("relu6", "min_val"): lambda k: 0, ("relu6", "max_val"): lambda k: 6,
    ("selu", "alpha"): lambda k: SELU_ALPHA,
    ("selu", "scale"): lambda k: SELU_SCALE, ("selu", "input_scale"): lambda k: 1,
    ("index_copy", "source_dim"): lambda k: len(k.shape("source") or ()),
    ("index_add", "source_dim"): lambda k: len(k.shape("source") or ()),
    ("elu", "scale"): lambda k: 1, ("elu", "input_scale"): lambda k: 1,
    ("embedding", "padding_idx"): lambda k: (
        2**64 - 1 if k.static("padding_idx") is None else unsigned(k.static("padding_idx"))
    ),
    ("grid_sample", "interpolation_mode"): lambda k: _MODES[k.static("mode")],
    ("grid_sample", "padding_mode"): lambda k: _MODES[k.static("padding_mode")],
    ("grid_sample", "align_corners"): lambda k: bool(k.static("align_corners")),
    ("norm", "ord"): lambda k: _order(k), ("matrix_norm", "ord"): lambda k: 2,
    **{(name, "correction"): lambda k: _correction(k) for name in _VARIANCES},
    **{(name, "dim"): lambda k: _dim_of_variance(k) for name in _VARIANCES},
    ("matrix_norm", "dim"): lambda k: tuple(
        d % len(k.shape("self") or k.shape("A") or ()) for d in k.static("dim")
    ),
    ("pad", "padding"): lambda k: unsigned(tuple(k.static("pad"))),
    ("fliplr", "dims"): lambda k: (1,), ("flipud", "dims"): lambda k: (0,),
    ("diag", "offset"): lambda k: k.static("diagonal"),
    ("diag", "dim1"): lambda k: unsigned(-2) if len(k.shape("self") or ()) == 1 else 0,
    ("diag", "dim2"): lambda k: unsigned(-1) if len(k.shape("self") or ()) == 1 else 1,
    ("rot90", "k"): lambda k: unsigned(k.static("k")),
    ("qr", "mode"): lambda k: (
        k.static("mode") if "mode" in k.call.op.parameters
        else "reduced" if k.static("some") else "complete"
    ),
    **{(name, "S_sym_argsize_minus_1"): lambda k: min((k.shape("self") or k.shape("A") or ())[-2:])
       for name in ("svd", "svdvals")},
}  # fmt: skip


def _repeats(kept: RecordedCall) -> tuple[int, ...]:
    dims, count = kept.static("dims"), len(kept.shape("self") or ())
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    return (1,) * (count - len(dims)) + dims


def _split_size(kept: RecordedCall) -> int:
    size, chunks = (kept.shape("self") or ())[kept.static("dim")], kept.static("chunks")
    return -(-size // int(chunks))


def _order(kept: RecordedCall) -> Any:
    """Get the order of a norm, by whichever name it has."""
    order = kept.static("p" if "p" in kept.call.op.parameters else "ord")
    return 2 if order in ("fro", None) else order


def _dim_of_variance(kept: RecordedCall) -> Any:
    dim = kept.static("dim")
    return None if isinstance(dim, bool) else as_kept(kept, "dim", dim)  # `var(False)`


def _correction(kept: RecordedCall) -> Any:
    if kept.static("correction") is not None:
        return kept.static("correction")
    dim = kept.static("dim")
    unbiased = dim if isinstance(dim, bool) else kept.static("unbiased")
    if unbiased is not None:
        return int(unbiased)
    return None if kept.static("dim") is None else 1


def _bias_sizes(kept: RecordedCall) -> tuple[int, ...]:
    shape = kept.shape("bias")
    return (0,) if shape is None else shape


CONVOLUTION: dict[str, Callable[[RecordedCall], Any]] = {
    "bias_sym_sizes_opt": _bias_sizes,
    "transposed": lambda k: "transpose" in k.op,
    "output_padding": lambda k: (
        as_kept(k, "output_padding", k.static("output_padding"))
        if "transpose" in k.op
        else (0,) * count_spatial_dims(k.op, k)
    ),
}
