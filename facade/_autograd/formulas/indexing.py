"""Gradients through indices and masks, as PyTorch's formulas spell them.

They read the indices that were saved, and so what an unpack hook gives back in their place. A
formula takes a `differentiate.Saved`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Slot

from ..._core.mask_ops import at, marks
from ..._dispatch.record import apply
from ..extensions import extensions
from ..graph.node import Node

# `_index_put_impl_` adds up where indices repeat; its node has the name of the function.
_INDEX_PUT = Op(
    TABLE["index_put"].fn, name="_index_put_impl_", backward="IndexPutImplBackward0",
    saves=TABLE["index_put"].saves,
)  # fmt: skip


def _zeros(s: Any) -> Any:
    return s.g.new_zeros(s.shape())


def _selected(s: Any) -> Any:
    """Differentiate `max(dim)`, `sort` and whatever else says where its values were."""
    dim, indices, g = s.static("dim", -1), s.output(1), s.g
    whole = s.node.state.call.op.name in ("sort", "topk")  # the dimension is still there
    if s.shape() and not whole and not s.static("keepdim", False):
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return _zeros(s).scatter(dim, indices, g)


def _running(s: Any) -> Any:
    """Differentiate `cummax` and `cummin`, which name a place several times."""
    return _zeros(s).scatter_add(s.static("dim"), s.output(1), s.g)


def _gathered(s: Any) -> Any:
    index = s["index"]
    if not index.numel():  # of any dtype
        return _zeros(s)
    return _zeros(s).scatter_add(s.static("dim"), index, s.g)


def _rows(s: Any) -> Any:
    """Compute the gradient of `source`: the rows that it went to."""
    source = s.shape("source")
    if not source:
        return s.g.index_select(s.static("dim"), s["index"].squeeze(0))
    rows = s.g.index_select(s.static("dim"), s["index"])
    return rows.expand(source)


def _added_rows(s: Any) -> Any:
    return s.scaled(_rows(s), "alpha")


def _filled_rows(s: Any) -> Any:
    return s.g.index_select(s.static("dim"), s["index"].unique()).sum()


def _keys(s: Any) -> tuple[Any, ...]:
    """Get the indices of `x[...]`: tensors, and None where a dimension is taken whole."""
    return tuple([s.node.unpack(k.index) if isinstance(k, Slot) else k for k in s["indices"]])


def _has(node: Node, places: Any) -> bool:
    """Tell whether a node kept these operands.

    One of a program that ran has those alone whose values its gradient reads, and where a mask is
    True nowhere that is none.
    """
    kept = node.saved
    return kept is None or all(k.index in kept for k in places if isinstance(k, Slot))


def _where(s: Any, like: Any) -> tuple[Any, ...]:
    """Find the positions that masks among the indices stand for; () if there are none.

    Args:
      like: of the shape of what was indexed.
    """
    known = s.static("places")
    if known and isinstance(s.node, Node) and _has(s.node, known):  # the masks are what the op had
        return tuple([s.node.unpack(k.index) if isinstance(k, Slot) else k for k in known])
    return extensions.positions(like, _keys(s))


def _put_back(s: Any) -> Any:
    zeros = _zeros(s)
    op, where = at(_INDEX_PUT, _where(s, zeros))
    return apply(op, zeros, _keys(s), s.g, True, *where)


def _put_over(s: Any) -> Any:
    if s.static("accumulate", False):
        return s.g
    values = s.g.new_zeros(s.shape("values"))
    one = len(s["indices"]) == 1 and values.numel() == 1 and marks(_keys(s)[0])
    op, where = at(TABLE["index_put"], () if one else _where(s, s.g))
    return apply(op, s.g, _keys(s), values, False, *where)


def _put_values(s: Any) -> Any:
    op, where = at(TABLE["index"], _where(s, s.g))
    return apply(op, s.g, _keys(s), *where)


def _put_at(s: Any) -> Any:
    if s.static("accumulate", False):
        return s.g
    return s.g.put(s["index"], s.g.new_zeros(s.shape("source")))


def _extreme(s: Any) -> Any:
    """Differentiate `amax` and `amin`: shared out among those that are equal."""
    dims, shape, keepdim = s.static("dim", ()), s.shape(), s.static("keepdim", False)
    dims = [dims] if isinstance(dims, int) else list(dims)
    gone = {d % len(shape) for d in dims} if shape else set()
    kept = [1 if d in gone else n for d, n in enumerate(shape)] if gone else []
    g, result = s.g, s.result
    if not keepdim:
        g, result = g.view(kept), result.view(kept)
    mask = result == s["input"]
    return g / mask.sum(dims, keepdim=True) * mask


def _unmasked(s: Any) -> Any:
    """Differentiate `masked_select`: what was taken goes back in order."""
    mask = s["mask"]
    shape = np.broadcast_shapes(s.shape(), tuple(mask.shape))
    return s.g.new_zeros(shape).masked_scatter(mask, s.g)


_SELECTED = {"input": _selected}
_RUNNING = {"input": _running}
_EXTREME = {"input": _extreme}
_BY_INDEX = {
    "input": lambda s: s.g.scatter(s.static("dim"), s["index"], 0),
    "src": lambda s: s.g.gather(s.static("dim"), s["index"]),
}

# By op and parameter: the gradient for that operand.
FORMULAS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "sort", "topk", "kthvalue", "mode", "max.dim", "min.dim", "median.dim", "nanmedian.dim",
        ),
        _SELECTED,
    ),
    "cummax": _RUNNING,
    "cummin": _RUNNING,
    "amax": _EXTREME,
    "amin": _EXTREME,
    "gather": {"input": _gathered},
    "scatter": _BY_INDEX,
    "scatter_add": {"input": lambda s: s.g, "src": _BY_INDEX["src"]},
    "index_select": {"input": lambda s: _zeros(s).index_add(s.static("dim"), s["index"], s.g)},
    "index_add": {"input": lambda s: s.g, "source": _added_rows},
    "index_copy": {
        "input": lambda s: s.g.index_fill(s.static("dim"), s["index"], 0), "source": _rows,
    },
    "index_fill": {
        "input": lambda s: s.g.index_fill(s.static("dim"), s["index"], 0), "value": _filled_rows,
    },
    "index": {"input": _put_back},
    "_index_put_impl_": {"values": _put_values},
    "index_put": {
        "input": _put_over, "values": _put_values,
    },
    "take": {"input": lambda s: _zeros(s).put(s["index"], s.g, True)},
    "put": {
        "input": _put_at, "source": lambda s: s.g.take(s["index"]).reshape(s.shape("source")),
    },
    "masked_select": {"input": _unmasked},
    "masked_fill": {
        "input": lambda s: s.g.masked_fill(s["mask"], 0),
        "value": lambda s: s.g.masked_select(s["mask"]).sum(),
    },
}  # fmt: skip
