"""What graph nodes keep beside tensors: `grad_fn._saved_dim`, `_saved_self_sym_sizes` and so on.

PyTorch's generated nodes have an attribute for each argument that their formula reads, in the form
in which C++ holds it: dims as unsigned numbers, one number for each spatial dimension, a reduction
as its number. Here they are worked out from the recorded call when someone asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from leafax.functional.program.program import Slot

from ..._rules.inplace_activation_slopes import SELU_ALPHA, SELU_SCALE
from ..._rules.saved_columns import slots_of, static_argument
from .saved_results import hidden_result

_SIZE = re.compile(r"(\w+)_sym_(?:(sizes_opt|sizes|numel|strides)|argsize_(minus_)?(\d))")
_ALIASES = {
    ("embedding", "indices"): "input", ("masked_select", "self"): "input",
}  # fmt: skip
_SEVERAL = frozenset({  # whose `dim` may be several
    "sum", "mean", "var", "std", "amax", "amin", "logsumexp", "var_mean", "std_mean", "nansum",
    "norm", "vector_norm",
})  # fmt: skip
_VARIANCES = ("var", "std", "var_mean", "std_mean")
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_SPATIAL = frozenset({"kernel_size", "stride", "padding", "dilation", "output_padding"})
_UNSIGNED = frozenset({"ignore_index", "index", "start", "padding_idx", "source_dim"})
_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2, "zeros": 0, "border": 1, "reflection": 2}


class _Kept:
    """A recorded call as its node sees it.

    Args:
      shapes, strides: of the operands; None for the strides that what was saved has.
      unpack: gives the tensor of an operand.
    """

    def __init__(
        self, call: Any, shapes: Sequence[Any], unpack: Callable[[int], Any],
        strides: Sequence[Any] | None,
    ) -> None:  # fmt: skip
        self.call, self.shapes, self.unpack = call, shapes, unpack
        self.strides = strides
        self.op = call.op.name
        self.slots = slots_of(call)

    def parameter(self, name: str) -> str | None:
        """The op's own name for what PyTorch calls `name`."""
        name = _ALIASES.get((self.op, name), name)
        if name == "self":
            return self.call.op.parameters[1 if self.call.op.random else 0]  # type: ignore[no-any-return]
        return name if name in self.call.op.parameters else None

    def static(self, name: str) -> Any:
        """An argument as it was given; a number that became an input is a number again."""
        value = static_argument(self.call, name)
        if isinstance(value, Slot):
            if self.shapes[value.index] or name == self.call.op.parameters[0] != "exponent":
                raise KeyError(name)  # a tensor that the gradient does not read
            return self.unpack(value.index).item()
        if isinstance(value, (tuple, list)) and any(isinstance(v, Slot) for v in value):
            raise KeyError(name)  # tensors that the gradient does not read
        return value

    def shape(self, name: str) -> tuple[int, ...] | None:
        parameter = self.parameter(name)
        places = self.slots.get(parameter or "")
        return tuple(self.shapes[places[0]]) if places else None


def saved_argument(
    name: str, call: Any, shapes: Sequence[Any], unpack: Callable[[int], Any],
    strides: Sequence[Any] | None = None,
) -> Any:  # fmt: skip
    """The value of `grad_fn._saved_<name>` where it is no saved tensor.

    Raises:
      KeyError: if the node has none of that name.
    """
    kept = _Kept(call, shapes, unpack, strides)
    rule = _RULES.get((kept.op, name))
    if rule is not None:
        return rule(kept)
    if kept.op.startswith("conv") and name in _CONVOLUTION:
        return _CONVOLUTION[name](kept)
    sized = _SIZE.fullmatch(name)
    if sized is not None:
        return _size(kept, sized)
    parameter = kept.parameter(name)
    if parameter is None:
        return hidden_result(name, kept)
    if (kept.op, name) in _ALIASES:
        return unpack(kept.slots[parameter][0])
    return _as_kept(kept, name, kept.static(parameter))


def _size(kept: _Kept, sized: re.Match[str]) -> Any:
    name, what, minus, place = sized.groups()
    shape = kept.shape(name)
    if shape is None:
        raise KeyError(name)
    if what == "numel":
        return math.prod(shape)
    if what == "strides":
        return unpacked_stride(kept, name)
    if what is not None:
        return shape
    return shape[-int(place)] if minus else shape[int(place)]


def unpacked_stride(kept: _Kept, name: str) -> tuple[int, ...]:
    index = kept.slots[kept.parameter(name) or ""][0]
    return tuple(kept.unpack(index).stride() if kept.strides is None else kept.strides[index])


def _as_kept(kept: _Kept, name: str, value: Any) -> Any:
    """An argument in the form that PyTorch's node has it in."""
    if name == "reduction" and isinstance(value, str):
        return _REDUCTIONS[value]
    if name in _SPATIAL and (spatial := _spatial(kept.op, kept)):
        if value is None:
            return ()
        return (value,) * spatial if isinstance(value, int) else tuple(value)
    if name == "dim" and kept.op in _SEVERAL and isinstance(value, int):
        return (unsigned(value),)
    if name in ("shifts", "dims") and isinstance(value, int):
        return (unsigned(value),)
    if name in ("dims", "shifts") and value is None:
        return ()
    if name.startswith("dim") or name == "shifts" or name in _UNSIGNED:
        return unsigned(value)
    if name == "p" and isinstance(value, int) and kept.op in ("pdist", "cdist"):
        return float(value)
    return value


def unsigned(value: Any) -> Any:
    """A negative number as C++ prints it without its sign; sequences by element."""
    if isinstance(value, (tuple, list)):
        return tuple(unsigned(v) for v in value)
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return value + 2**64
    return value


def _spatial(op: str, kept: _Kept) -> int:
    """How many spatial dimensions the op has, 0 for ops without."""
    digit = re.search(r"(\d)d", op)
    if digit is not None:
        return int(digit[1])
    return 2 if op in ("unfold", "fold") and "kernel_size" in kept.call.op.parameters else 0


def _scale(place: int) -> Callable[[_Kept], Any]:
    def rule(kept: _Kept) -> Any:
        factor = kept.static("scale_factor")
        if factor is None:
            return None
        return float(factor[place] if isinstance(factor, (tuple, list)) else factor)

    return rule


def _output_size(kept: _Kept) -> tuple[int, ...]:
    sizes = (kept.shape("self") or ())[2:]
    given = kept.static("size")
    if given is not None:
        return (given,) * len(sizes) if isinstance(given, int) else tuple(given)
    scales = [_scale(k)(kept) for k in range(len(sizes))]
    return tuple(int(n * s) for n, s in zip(sizes, scales, strict=True))


def _start(kept: _Kept) -> int:
    """Where a slice begins: as it was said, but `narrow` counts from the front."""
    start = int(kept.static("start") or 0)
    if start < 0 and kept.op == "narrow":
        return start + (kept.shape("self") or ())[kept.static("dim")]
    return int(unsigned(start))


def _end(kept: _Kept) -> int:
    if "end" not in kept.call.op.parameters:
        return _start(kept) + int(kept.static("length"))
    end = kept.static("end")
    return 2**63 - 1 if end is None else int(unsigned(end))


def _step(kept: _Kept) -> int:
    return int(kept.static("step")) if "step" in kept.call.op.parameters else 1


def _cross_dim(kept: _Kept) -> Any:
    dim = kept.static("dim")
    return (kept.shape("self") or ()).index(3) if dim is None else unsigned(dim)


def _moved(kept: _Kept) -> tuple[int, ...]:
    """The permutation that `movedim` is."""
    count = len(kept.shape("self") or ())
    pairs = [kept.static(name) for name in ("source", "destination")]
    source, destination = (
        [d % count for d in (p if isinstance(p, (tuple, list)) else (p,))] for p in pairs
    )
    rest = iter([d for d in range(count) if d not in source])
    placed = dict(zip(destination, source, strict=True))
    return tuple(placed[d] if d in placed else next(rest) for d in range(count))


_RULES: dict[tuple[str, str], Callable[[_Kept], Any]] = {
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


def _repeats(kept: _Kept) -> tuple[int, ...]:
    dims, count = kept.static("dims"), len(kept.shape("self") or ())
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    return (1,) * (count - len(dims)) + dims


def _split_size(kept: _Kept) -> int:
    size, chunks = (kept.shape("self") or ())[kept.static("dim")], kept.static("chunks")
    return -(-size // int(chunks))


def _order(kept: _Kept) -> Any:
    """Of a norm, by whichever name its order has."""
    order = kept.static("p" if "p" in kept.call.op.parameters else "ord")
    return 2 if order in ("fro", None) else order


def _dim_of_variance(kept: _Kept) -> Any:
    dim = kept.static("dim")
    return None if isinstance(dim, bool) else _as_kept(kept, "dim", dim)  # `var(False)`


def _correction(kept: _Kept) -> Any:
    if kept.static("correction") is not None:
        return kept.static("correction")
    dim = kept.static("dim")
    unbiased = dim if isinstance(dim, bool) else kept.static("unbiased")
    if unbiased is not None:
        return int(unbiased)
    return None if kept.static("dim") is None else 1


def _bias_sizes(kept: _Kept) -> tuple[int, ...]:
    shape = kept.shape("bias")
    return (0,) if shape is None else shape


_CONVOLUTION: dict[str, Callable[[_Kept], Any]] = {
    "bias_sym_sizes_opt": _bias_sizes,
    "transposed": lambda k: "transpose" in k.op,
    "output_padding": lambda k: (
        _as_kept(k, "output_padding", k.static("output_padding"))
        if "transpose" in k.op
        else (0,) * _spatial(k.op, k)
    ),
}
