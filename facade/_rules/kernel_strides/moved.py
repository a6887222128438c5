"""Strides of results whose elements come from elsewhere: indexed, rolled, stacked, gated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous_strides
from leafax.functional.ops.shape.view_rules import VIEW_RULES
from leafax.functional.program.program import Slot

from ..strides.channels_last import strides_in, suggested
from ..strides.layouts import Strides, copied, iterated, laid
from ..strides.of_results import ALWAYS, OF_STRIDED, strides_unless_rows


def _joined(shape: tuple[int, ...], parts: list[Layout]) -> Layout:
    """Lay out the result of `cat`: in the memory format that all parts suggest."""
    formats = {suggested(x) for x in parts}
    wanted = formats.pop() if len(formats) == 1 else None
    return Layout(shape, (wanted and strides_in(shape, wanted)) or contiguous_strides(shape))


def _rolled(x: Layout, shifts: list[int], dims: list[int]) -> Layout:
    """Rolling along a dim joins the two parts that it swaps."""
    for shift, dim in zip(shifts, dims, strict=True):
        start = -shift % max(x.shape[dim], 1)
        sizes = [(*x.shape[:dim], n, *x.shape[dim:][1:]) for n in (x.shape[dim] - start, start)]
        x = _joined(x.shape, [Layout(size, x.strides) for size in sizes])
    return x


def _listed(x: Any) -> list[int]:
    return [x] if isinstance(x, int) else list(x)


def _roll(x: Layout, shifts: Any, dims: Any = None) -> Layout | None:
    if dims is None or dims in ((), []) or 0 in x.shape:
        return None if 0 not in x.shape else x
    return _rolled(x, _listed(shifts), [d % len(x.shape) for d in _listed(dims)])


def _shift(x: Layout, dim: Any, up: int) -> Layout:
    rank = len(x.shape)
    dims = [d % rank for d in (range(rank) if dim is None else _listed(dim))]
    return _rolled(x, [(x.shape[d] + up) // 2 for d in dims], dims)


def _fftshift(x: Layout, dim: Any = None) -> Layout:
    return _shift(x, dim, 0)


def _ifftshift(x: Layout, dim: Any = None) -> Layout:
    return _shift(x, dim, 1)


def _stack(parts: list[Layout], dim: int = 0) -> Layout | None:
    """Joined along the dim at which the new one goes, which is then split; behind all: as said."""
    shape, rank, count = parts[0].shape, len(parts[0].shape), len(parts)
    dim %= rank + 1
    if dim == rank:
        ones = [Layout((*x.shape, 1), (*x.strides, 1)) for x in parts]
        return _joined((*shape, count), ones)
    whole = _joined((*shape[:dim], shape[dim] * count, *shape[dim:][1:]), parts)
    found: Layout | None = VIEW_RULES["view"](whole, (*shape[:dim], count, *shape[dim:]))
    return found


def _index(operands: list[Layout], indices: Any) -> list[Layout]:
    """List what ATen iterates over: the source, strides 0 for what is indexed, and the indices."""
    source, places = operands[0], [k for k, i in enumerate(indices) if isinstance(i, Slot)]
    left = [k for k in range(len(source.shape)) if k not in places]
    together = places == list(range(places[0], places[-1] + 1))
    lead = [k for k in left if k < places[0]] if together else []
    rest = left[len(lead) :]
    found = [operands[indices[k].index] for k in places]
    rank = max(len(x.shape) for x in found)
    size = tuple(
        max(x.shape[d - rank] if d >= rank - len(x.shape) else 1 for x in found)
        for d in range(rank)
    )  # fmt: skip
    if any(0 in x.shape for x in found):
        return []

    def of(dims: list[int], values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[k] for k in dims)

    shape = (*of(lead, source.shape), *size, *of(rest, source.shape))
    strides = (*of(lead, source.strides), *[0] * rank, *of(rest, source.strides))
    among = (*[1] * len(lead), *size, *[1] * len(rest))
    rows = Layout(among, contiguous_strides(among))  # where a reshape has to copy
    views = [VIEW_RULES["view"](_expanded(x, size), among) or rows for x in found]
    return [Layout(shape, strides), *views]


def _expanded(x: Layout, size: tuple[int, ...]) -> Layout:
    """Find the layout of `expand`."""
    lead = len(size) - len(x.shape)
    pairs = zip(x.shape, x.strides, size[lead:], strict=True)
    return Layout(size, (*[0] * lead, *[s if n == m else 0 for n, s, m in pairs]))


def _glu(x: Layout, dim: int = -1) -> list[Layout]:
    dim %= len(x.shape)
    half = Layout((*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim:][1:]), x.strides)
    return [half, half]


_MOVED: dict[str, Callable[..., Layout | None]] = {
    "roll": _roll, "fftshift": _fftshift, "ifftshift": _ifftshift,
}  # fmt: skip


def moved_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...]:
    """Lay out the result of one of these ops."""
    return (_moved(call.op, call, [laid(v) for v in inputs], avals),)


OF_STRIDED |= dict.fromkeys((*_MOVED, "stack", "index", "glu"), moved_strides)


def _moved(op: Any, call: Any, operands: list[Layout], avals: Any) -> Strides:
    """Find the strides of a result, None if it is row-major."""
    shape, args = tuple(avals[0].shape), call.args[1:]
    if any(isinstance(a, Slot) for a in (*args, *call.kwargs.values())):
        return None
    if op.name in ("index", "glu"):
        by_index = op.name == "index"
        over = _index(operands, args[-1]) if by_index else _glu(operands[0], *args, **call.kwargs)
        return iterated(shape, over) if over and over[0].shape == shape else None
    if op.name == "stack":
        found = _stack(operands, *args, **call.kwargs)
    else:
        found = _MOVED[op.name](operands[0], *args, **call.kwargs)
    if found is None or found.shape != shape or found.strides == contiguous_strides(shape):
        return None
    return found.strides


def rotated_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...]:
    """Lay out the result of `rot90`."""
    others = {k: x for k, x in call.kwargs.items() if k != "input"}
    found = _rotated(laid(inputs[0]), *call.args[1:], **others)
    return (strides_unless_rows(found, avals[0].shape),)


ALWAYS["rot90"] = rotated_strides


def _rotated(base: Layout, k: int = 1, dims: Any = (0, 1)) -> Layout:
    """Find the layout of `rot90`: flipped, then for odd `k` transposed."""
    if k % 4 == 0:
        return Layout(base.shape, contiguous_strides(base.shape))
    strides = copied(base) or contiguous_strides(base.shape)
    order = list(range(len(base.shape)))
    if k % 2:
        a, b = (d % len(order) for d in dims)
        order[a], order[b] = b, a
    return Layout(tuple(base.shape[d] for d in order), tuple(strides[d] for d in order))


def added_product_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...]:
    """Lay out the result of `addr`: elementwise, of one vector as a column."""
    x, first, second = map(laid, inputs[:3])
    column = Layout((*first.shape, 1), (*first.strides, 1))
    return (iterated(tuple(avals[0].shape), [x, column, second]),)


OF_STRIDED["addr"] = added_product_strides
